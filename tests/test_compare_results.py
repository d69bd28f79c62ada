"""benchmarks/compare_results.py names what differs between two results folders."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool():
    spec = spec_from_file_location("compare_results", ROOT / "benchmarks" / "compare_results.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(folder, value="1.0,,x", verdict="reproduced", runs="a"):
    drawn = folder / "artefacts" / "p" / "figure1"
    for path, text in (
        (drawn / "figure1.csv", f"a,b,c\n{value}\n"),
        (drawn / "artefact.json", json.dumps({"provenance": {"runs": 1, "spec_digest": runs}})),
        (folder / "claims" / "p.json", json.dumps({"claims": [{"id": "c1", "verdict": verdict}]})),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"value": "1.1,,x"}, "artefacts/p/figure1/figure1.csv: a, row 0: 1.0 → 1.1 (1 in all)"),
        ({"runs": "b"}, "artefacts/p/figure1/artefact.json: spec_digest: a → b"),
        ({"verdict": "inconclusive"}, "claims/p.json: c1.verdict: reproduced → inconclusive"),
    ],
)
def test_each_difference_is_one_line(tool, tmp_path, changes, line):
    before, after = results(tmp_path / "before"), results(tmp_path / "after", **changes)
    assert [*tool.differences(before, after)] == [line]


def test_equal_folders_rounding_and_ignored_fields_are_no_difference(tool, tmp_path):
    before = results(tmp_path / "before")
    after = results(tmp_path / "after", value="1.0000000001,,x", verdict="inconclusive")
    assert [*tool.differences(before, before)] == []
    assert [*tool.differences(before, after, tolerance=1e-9, ignored=["verdict"])] == []


def test_a_missing_file_is_a_difference(tool, tmp_path):
    before, after = results(tmp_path / "before"), results(tmp_path / "after")
    (after / "claims" / "p.json").unlink()
    assert [*tool.differences(before, after)] == [f"claims/p.json: only in {before}"]
