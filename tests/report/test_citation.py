import re
from pathlib import Path

import pytest
import yaml
from cffconvert import Citation

import fedsampling
from fedsampling.base.errors import InputError
from fedsampling.evidence.verdicts import Claim
from fedsampling.experiments.papers import load_paper
from fedsampling.report import citation

CITATION = Path(__file__).parents[2] / "CITATION.cff"


def test_citation_cff_validates_against_its_schema():
    Citation(CITATION.read_text(encoding="utf-8")).validate()


def test_citation_cff_names_the_installed_version_and_the_five_papers():
    assert citation.read(CITATION).version == fedsampling.__version__
    references = yaml.safe_load(CITATION.read_text(encoding="utf-8"))["references"]
    arxiv = ["2107.12211", "2010.13723", "2105.05883", "2012.07383", "2504.01921"]
    assert [reference["url"].rsplit("/", 1)[1] for reference in references] == arxiv


def test_software_entry_has_version_year_and_what_is_not_evidence():
    entry = citation.software_bibtex(
        citation.read(CITATION), "2026-11-21T02:10:00Z", ["scale: quick", "data: embedded"]
    )
    assert f"version {fedsampling.__version__}" in entry
    assert re.search(r"year\s*= \{2026\}", entry)
    assert "{Report of runs finished on 2026-11-21; scale: quick; data: embedded}" in entry
    assert entry.count("{") == entry.count("}")


def test_software_entry_escapes_what_latex_would_read_as_commands():
    software = citation.Software("50 % of A & B_1", "1", "", "MIT", ("O'Neill & Co",))
    entry = citation.software_bibtex(software, None, [])
    assert r"{{50 \% of A \& B\_1}}" in entry
    assert "year" not in entry


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("doi: 10.5281/zenodo.1\nurl: https://a.org", "https://doi.org/10.5281/zenodo.1"),
        ("url: https://a.org/b", "https://a.org/b"),
    ],
)
def test_the_address_in_citation_cff_is_in_all_citations(line, address, tmp_path):
    text = CITATION.read_text(encoding="utf-8").replace("type: software", f"type: software\n{line}")
    (tmp_path / "CITATION.cff").write_text(text, encoding="utf-8")
    Citation(text).validate()
    software = citation.read(tmp_path / "CITATION.cff")
    entry = re.sub(" +", " ", citation.software_bibtex(software, None, []))
    assert f"url = {{{address}}}," in entry
    texts = dict.fromkeys(("statement", "reported", "ours", "margin", "reason", "rule"), "")
    claim = Claim(id="c1", artefact="figure1", verdict="reproduced", **texts)
    paper = load_paper("rizk2022importance", CITATION.parent / "papers")
    assert citation.cited(software, paper, claim, None).endswith(f"; {address}.")


@pytest.mark.parametrize("text", ["", "@article{other, title={x}}", "@a{key,}\n@b{more,}"])
def test_paper_bib_without_just_the_papers_entry_is_rejected(tmp_path, text):
    (tmp_path / "paper.bib").write_text(text)
    with pytest.raises(InputError, match="must be one entry with the key 'key'"):
        citation.paper_bibtex(tmp_path / "paper.bib", "key")


@pytest.mark.parametrize(
    ("text", "message"),
    [("title: [", "is not YAML"), ("title: x", "lacks 'version'"), ("", "lacks")],
)
def test_broken_citation_cff_gets_one_line(tmp_path, text, message):
    (tmp_path / "CITATION.cff").write_text(text)
    with pytest.raises(InputError, match=message):
        citation.read(tmp_path / "CITATION.cff")
