"""Findings: prose that takes its numbers from claims and artefacts, and is shown with no others."""

import pytest
from tests.helpers.fake_results import change, redraw
from tests.shared import PAPERS, ROOT

from fedsampling.base.errors import InputError
from fedsampling.base.files import read_record
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import Past
from fedsampling.report import content, findings
from fedsampling.workflow.findings import write_findings
from fedsampling.workflow.project import Project

KEY = "first2022paper"
TEXT = 'MD needs {{ n(row("table1", name="md").value) }} rounds, {{ noted("table1", "(gap)") }}.'
TEXT += "\n\n{{ table() }}\n\n### Data\n\n- Incomplete.\n"


def write_template(project, text):
    (project.root / "papers" / KEY / findings.FILE).write_text(text)


@pytest.fixture
def project(results):
    """Give one paper findings, and numbers for them."""
    table = results.root / "results" / "artefacts" / KEY / "table1"
    (table / "table1.csv").write_text("name,value\nmd,1234.5\nuniform,7\n")
    redraw(table)
    write_template(results, TEXT)
    return results


def publish(project, text):
    (project.root / findings.DOCS).parent.mkdir(exist_ok=True)
    (project.root / findings.DOCS).write_text(text)


def judged(project):
    return content.claims(project.root / "results" / "claims" / f"{KEY}.json")


def sections(project):
    """Return the findings, and the notes on data."""
    artefacts = project.root / "results" / "artefacts" / KEY
    return findings.sections(project.papers()[KEY], judged(project), artefacts)


def test_numbers_and_verdicts_are_those_of_the_results(project):
    text, notes = sections(project)
    assert notes == "## Lovelace et al., 2022\n\n- Incomplete.\n"
    assert text.startswith("## Lovelace et al., 2022\n\nMD needs 1,230 rounds, gap.\n")
    path = project.root / "results" / "claims" / f"{KEY}.json"
    first, *others = read_record(path)["claims"]
    assert first["verdict"] == "reproduced"
    assert "| reproduced, confirmed |" in text
    changed = {"verdict": "contradicted", "ours": "17 dB", "drawn": [], "confirmation": None}
    change(path, claims=[first | changed, *others])
    assert "| 17 dB | contradicted |" in sections(project)[0]


def test_each_change_of_a_verdict_has_what_it_led_to_and_the_reason(project):
    paper = project.papers()[KEY]
    past = [
        Past(date="2026-11-22", verdict="contradicted", why="A new rule."),
        Past(date="2026-11-25", verdict="inconclusive", why="More seeds."),
    ]
    claims = {"c1": paper.claims["c1"].model_copy(update={"history": past})}
    changed = paper.model_copy(update={"claims": claims})
    text = findings.history({KEY: (changed, judged(project))})
    c1 = "| Lovelace et al., 2022 | c1 "
    assert text == findings.HISTORY_HEAD + (
        f"{c1}| 2026-11-22 | contradicted | inconclusive | A new rule. |\n"
        f"{c1}| 2026-11-25 | inconclusive | reproduced, confirmed | More seeds. |\n"
    )


@pytest.mark.parametrize(
    "template",
    [
        '{{ row("table1", name="poisson").value }}',
        '{{ claim("c99").ours }}',
        '{{ noted("table1", "(9) dB") }}',
        "{{ n(",
    ],
)
def test_a_number_that_is_not_among_the_results_is_an_error(project, template):
    write_template(project, template)
    with pytest.raises(InputError, match="the results lack a number"):
        sections(project)[0]


def test_the_report_shows_findings_with_the_numbers_of_their_runs(project):
    text = findings.HEAD + sections(project)[0]
    publish(project, text)
    page = (project.build() / f"{KEY}.html").read_text(encoding="utf-8")
    assert "<p>MD needs 1,230 rounds, gap.</p>" in page
    assert ">reproduced</td>" in page
    publish(project, text.replace("1,230", "1,240"))
    assert "MD needs" not in (project.build() / f"{KEY}.html").read_text(encoding="utf-8")


def test_the_first_page_gets_its_sentences_from_their_sections(project):
    write_template(
        project,
        "**Result.** It works.\n\n### In short\n\n- **Success.** It *works*.\n\n"
        "### Errors in the theory\n\n| printed | corrected |\n|---|---|\n| a | b |\n\n"
        "### Why\n\nBecause.\n",
    )
    publish(project, sections(project)[0])
    artefacts = project.root / "results" / "artefacts" / KEY
    published = findings.as_published(project.papers()[KEY], [], artefacts)
    assert published.highlights == {"Success": "It <em>works</em>."}
    assert "<td>a</td>" in published.errors
    assert [word in published.text for word in ("It works.", "Because.", "Success", "<td>")] == [
        *(True, True, False, False)
    ]


def test_html_within_findings_is_shown_and_not_run(project):
    write_template(project, "A <script>alert(1)</script>.\n\n<img src=x onerror=alert(2)>\n")
    publish(project, sections(project)[0])
    artefacts = project.root / "results" / "artefacts" / KEY
    html = findings.as_published(project.papers()[KEY], [], artefacts).text
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert "<img" not in html


def test_the_document_has_every_paper_and_no_place_left_open():
    text = (ROOT / findings.DOCS).read_text(encoding="utf-8")
    assert text.startswith(findings.HEAD)
    heads = ("Chen et al., 2022", "Fraboni et al., 2021", "Fraboni et al., 2022")
    heads += ("Harshvardhan et al., 2025", "Rizk et al., 2022", "The cross matrix")
    assert [text.count(f"\n## {head}") for head in heads] == [1] * 6
    assert "{{" not in text


@pytest.mark.long
def test_the_document_is_what_the_shipped_runs_give(everything):
    write_findings(Project(Config(), everything, PAPERS), only_check=True)


@pytest.mark.parametrize("restriction", [{"papers": ["rizk2022importance"]}, {}])
def test_findings_of_some_papers_never_replace_those_of_all(tmp_path, restriction):
    config = Config(scale="quick", data="embedded", **restriction)
    with pytest.raises(InputError, match=r"set both to null|not judged yet"):
        write_findings(Project(config, tmp_path, PAPERS), only_check=True)


def test_a_speed_up_of_zero_is_a_missed_target():
    missed = {"speed_up": 0.0, "low": 0.0, "high": 0.0}
    assert findings.interval(missed, "speed_up") == "target missed"
    assert findings.interval({"mean": 0.0, "low": -1.0, "high": 1.0}) == "0 [−1.00, 1.00]"
