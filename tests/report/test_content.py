import re

import pytest
from tests.helpers.fake_results import change
from tests.shared import PAPERS, lines_of

from fedsampling.base.errors import InputError
from fedsampling.base.files import read_record
from fedsampling.experiments.papers import load_paper
from fedsampling.report import content


def _load(results):
    return content.load(results.root / "results", results.papers())


FIGURE = "artefacts/first2022paper/figure1/artefact.json"


def test_only_artefacts_that_exist_and_are_declared_are_read(results):
    folder = results.root / "results"
    (folder / FIGURE).parent.rename(folder / "artefacts/first2022paper/figure8")
    (folder / "artefacts/second2025paper/figure3/artefact.json").unlink()
    (chapter,) = _load(results)
    assert [exhibit.artefact for exhibit in chapter.exhibits] == ["table1", "table2"]
    paper = results.papers()["first2022paper"]
    fewer = paper.model_copy(update={"artefacts": {"table1": paper.artefacts["table1"]}})
    (chapter,) = content.load(folder, {"first2022paper": fewer})
    assert [exhibit.artefact for exhibit in chapter.exhibits] == ["table1"]
    with pytest.raises(InputError, match="no artefacts in"):
        content.load(folder, {})


def flip(path):
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def change_verdict(path):
    claims = path.parents[3] / "claims/second2025paper.json"
    (claim, *remaining) = read_record(claims)["claims"]
    change(claims, claims=[claim | {"verdict": "proven"}, *remaining])


@pytest.mark.parametrize(
    ("damage", "messages"),
    [
        (lambda path: path.write_text("{"), [r"figure1/artefact\.json: not JSON"]),
        (
            lambda path: path.write_text(path.read_text().replace("Dev", "Dav")),
            [r"artefact\.json: checksum differs"],
        ),
        (lambda path: flip(path.with_name("figure1.csv")), [r"figure1\.csv: changed since it was"]),
        (lambda path: flip(path.with_name("figure1.svg")), [r"figure1\.svg: changed since it was"]),
        (lambda path: change(path, kind="picture", notes=3), ["kind", "notes"]),
        (lambda path: change(path, files={"svg": "missing.svg"}), ["which is missing"]),
        (lambda path: change(path, files={"svg": "../table1/table1.csv"}), ["which is missing"]),
        (lambda path: change(path, files={"svg": "/etc/passwd"}), ["which is missing"]),
        (change_verdict, [r"second2025paper\.json: 0\.verdict"]),
    ],
)
def test_damaged_results_are_rejected_with_a_line_for_each_error(results, damage, messages):
    damage(results.root / "results" / FIGURE)
    for line, message in zip(lines_of(_load, results), messages, strict=True):
        assert re.search(message, line)


def test_a_claim_names_the_samplers_that_its_parts_compare():
    chapter = content.Chapter(load_paper("fraboni2021clustered", PAPERS), "", (), ())
    compared = chapter.samplers("c10")
    assert compared == {"clustered_size", "clustered_similarity", "md"}
