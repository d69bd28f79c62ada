import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml
from cffconvert import Citation
from tests.shared import ROOT

import fedsampling
from fedsampling.base.errors import InputError
from fedsampling.evidence.claims import Claim
from fedsampling.report import citation

CITATION = ROOT / "CITATION.cff"
SOFTWARE = citation.read(CITATION)
PAPER = SimpleNamespace(key="first", title="On Sampling")


def test_citation_cff_validates_against_its_schema():
    Citation(CITATION.read_text(encoding="utf-8")).validate()


def test_citation_cff_names_the_installed_version_and_the_five_papers():
    assert citation.read(CITATION).version == fedsampling.__version__
    references = yaml.safe_load(CITATION.read_text(encoding="utf-8"))["references"]
    arxiv = ["2107.12211", "2010.13723", "2105.05883", "2012.07383", "2504.01921"]
    assert [reference["url"].rsplit("/", 1)[1] for reference in references] == arxiv


def test_software_entry_has_version_year_and_what_is_not_evidence():
    entry = citation.software_bibtex(
        citation.read(CITATION), "2026-11-21T02:10:00Z", ["scale: quick", "data: 50 % & 50 %"]
    )
    assert f"version {fedsampling.__version__}" in entry
    assert re.search(r"year\s*= \{2026\}", entry)
    assert "{Report of runs finished on 2026-11-21; scale: quick; data: 50 \\% \\& 50 \\%}" in entry
    assert entry.count("{") == entry.count("}")


def test_the_doi_is_the_address_in_an_entry(tmp_path):
    text = CITATION.read_text(encoding="utf-8") + "doi: 10.5281/zenodo.1\nurl: https://a.org\n"
    (tmp_path / "CITATION.cff").write_text(text, encoding="utf-8")
    entry = citation.software_bibtex(citation.read(tmp_path / "CITATION.cff"), None, [])
    assert "{https://doi.org/10.5281/zenodo.1}," in entry


def test_an_incomplete_citation_cff_gets_one_line(tmp_path):
    (tmp_path / "CITATION.cff").write_text("title: x")
    with pytest.raises(InputError, match="missing key 'version'"):
        citation.read(tmp_path / "CITATION.cff")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("empirical", ": reproduced, explored"), ("code check", ": reproduced, code check")],
)
def test_only_an_empirical_claim_is_cited_as_explored(kind, expected):
    claim = Claim("c1", "", "", "", "", "", "reproduced", "", "", kind=kind, seeds=1, scale="paper")
    cited = citation.of_claim(SOFTWARE, PAPER, claim, None)
    assert cited.cited == f"Claim c1 of On Sampling{expected}"
    assert cited.runs == ("paper scale", "1 seed")


def test_an_address_in_an_entry_is_verbatim():
    software = replace(SOFTWARE, report="https://a.org/my_report")
    claim = Claim("c1", "", "", "", "", "", "reproduced", "", "")
    entry = citation.of_claim(software, PAPER, claim, None).bibtex
    assert "{https://a.org/my_report/first.html#claim-c1}," in entry
    assert "{https://a.org/my_report}," in citation.software_bibtex(software, None, [])
