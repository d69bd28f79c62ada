import hashlib
import json
import re

import pytest
from tests.helpers.fake_results import change

from fedsampling.base.errors import InputError
from fedsampling.base.files import read_record


@pytest.fixture(scope="session")
def crate(report):
    graph = json.loads((report / "ro-crate-metadata.json").read_text(encoding="utf-8"))["@graph"]
    entities = {entity["@id"]: entity for entity in graph}
    assert len(entities) == len(graph)
    return entities


def _references(value):
    return set(re.findall(r'\{"@id": "([^"]*)"\}', json.dumps(value)))


def test_every_reference_leads_to_an_entity(crate):
    # What the metadata file conforms to, and Snakemake's own pages, are not described in it.
    language = crate[crate["workflow/Snakefile"]["programmingLanguage"]["@id"]]
    outside = _references([crate["ro-crate-metadata.json"]["conformsTo"], language])
    assert outside
    assert all(target.startswith("https://") for target in outside)
    references = _references(list(crate.values()))
    assert len(references) > 30
    assert references - outside <= set(crate)


def test_every_file_of_the_report_is_described_by_hash_size_and_format(report, crate):
    described = {name: entity for name, entity in crate.items() if "File" in entity["@type"]}
    assert {_["@id"] for _ in crate["./"]["hasPart"]} == set(described)
    present = {
        path.relative_to(report).as_posix()
        for path in report.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }
    assert set(described) == present - {"ro-crate-metadata.json"}
    for name, entity in described.items():
        content = (report / name).read_bytes()
        assert entity["sha256"] == hashlib.sha256(content).hexdigest()
        assert entity["contentSize"] == str(len(content))
        assert "/" in entity["encodingFormat"]


def test_run_links_what_it_read_to_what_it_made(crate):
    run = crate[crate["./"]["mentions"]["@id"]]
    assert run["@type"] == "CreateAction"
    assert run["instrument"] == crate["./"]["mainEntity"] == {"@id": "workflow/Snakefile"}
    assert run["startTime"] == "2026-11-21T02:00:00+00:00"
    assert crate["./"]["datePublished"] == "2026-11-21T02:10:00Z"  # of its last run
    inputs = {_["@id"] for _ in run["object"]}
    assert {"workflow/config.yaml", "first2022paper/paper.yaml", f"#input-{'12' * 32}"} <= inputs
    outputs = {_["@id"] for _ in run["result"]}
    assert {"index.html", "first2022paper/figure1/figure1.svg", "verdicts.json"} <= outputs
    assert not inputs & outputs


def test_report_without_any_dated_run_is_refused(results):
    for path in (results.root / "results" / "artefacts").rglob("artefact.json"):
        change(path, provenance=read_record(path)["provenance"] | {"finished": None})
    with pytest.raises(InputError, match="drawn from runs with recorded times"):
        results.build()
