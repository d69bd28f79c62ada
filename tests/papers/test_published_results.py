"""Captions and findings against the numbers that the published runs give.

The long tests draw every artefact and judge every claim; the others skip the slow ones.
"""

import re
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from fedsampling.evidence import summaries
from fedsampling.evidence.statistics import LEVEL
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import UNDECIDED
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import draw_function, load_paper
from fedsampling.report import content, findings
from fedsampling.report.claim_axes import accepted_values
from fedsampling.report.drawing.artefacts import Artefact
from fedsampling.report.drawing.saving import PLACEHOLDER, SETTING_COLUMNS, filled_caption
from fedsampling.workflow import judging
from fedsampling.workflow.project import Project
from fedsampling.workflow.summarising import summarise

from .test_declarations import FIXED, NAMES

ROOT = Path(__file__).parents[2]
KEYS = (
    "chen2022optimal",
    "fraboni2021clustered",
    "fraboni2022general",
    "harshvardhan2025latency",
    "rizk2022importance",
)
DEAR_RUNS = {  # seconds to read
    "harshvardhan2025latency": {"quadratic_sensitivity", "sensitivity", "quadratic_variants"},
    "rizk2022importance": {"few", "few_standard", "sensitivity", "uncorrected"},
}
DEAR_ARTEFACTS = {"fraboni2021clustered": {"figure5"}}  # seconds to draw
WITH_ALTERNATIVES = tuple(key for key in KEYS if key != "fraboni2022general")  # small runs
WITHOUT_RANGE = {
    "fraboni2022general/c5",  # the paper's number is compared with the range of random choices
    "harshvardhan2025latency/c23",  # no run reaches the target, so there is no interval
}
# Columns of an artefact's CSV with the number of seeds.
SEEDS = ("n", "runs", "size", "seeds")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


@cache
def project():
    return Project(Config(papers=list(KEYS)), Path(mkdtemp()), ROOT / "papers")


@cache
def loaded(key, experiment):
    return summaries.load(summarise(key, experiment, project()))


def drawn(key, cheap):
    """Draw the artefacts that have their runs; if cheap, those with settings in the caption."""
    paper = project().plan.paper(key)
    for name, spec in paper.artefacts.items():
        dear = DEAR_RUNS.get(key, set()) & set(spec.experiments)
        if cheap and (
            dear
            or name in {"alternatives", *DEAR_ARTEFACTS.get(key, ())}
            or not PLACEHOLDER.search(spec.caption)
        ):
            continue
        used = {run: loaded(key, run).only(spec.cases) for run in spec.experiments}
        yield name, draw_function(paper, name)(used, paper), used
        plt.close("all")


def numbers(values):
    """Format numbers as captions do."""
    plain = [value for value in values if isinstance(value, (int, float, np.number))]
    return {f"{int(x):,}" if x == int(x) else f"{x:g}" for x in plain if np.isfinite(x)}


def settings(summary, data):
    """Return every number among the settings of the cases that the CSV names."""
    cases = [case for case in summary.settings["cases"] if case in set(data.get("case", ()))]
    chosen = {case: summary.settings["cases"][case] for case in cases or summary.settings["cases"]}
    return numbers(
        list(leaves([chosen, summary.settings["settings"], summary.settings["samplers"]]))
    )


def leaves(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list):
        for branch in tree:
            yield from leaves(branch)
    else:
        yield tree


def disagreements(paper, name, artefact, used):
    """Compare the numbers of a finished caption with the CSV, in both directions."""
    template, data = paper.artefacts[name].caption, artefact.data
    caption = artefact.caption or filled_caption(template, used, data)
    captioned = set(NUMBER.findall(NAMES.sub("", caption)))
    printed = {row.value for row in paper.reports} | FIXED.get(f"{paper.key}/{name}", set())
    columns = {column: numbers(data[column].unique()) for column in data}
    if "at" in data:
        columns["rounds"] = numbers([data["at"].max()])
    seeds = numbers(
        [
            count
            for summary in used.values()
            for count in summary.rows.groupby("case", observed=True)["seed"].nunique()
        ]
    )
    allowed = printed | seeds | set().union(*columns.values())
    for summary in used.values():
        allowed |= settings(summary, data)
    wrong = [
        f"{name}: {number} is neither drawn nor the paper's"
        for number in sorted(captioned - allowed)
    ]
    for place in PLACEHOLDER.finditer(template):
        column = "rounds" if place["path"] == "rounds" else SETTING_COLUMNS.get(place["path"])
        if column in columns and not place["experiment"]:
            missing = sorted(columns[column] - captioned)
            wrong += [f"{name}: {column} {number} is drawn" for number in missing]
        if place["path"] == "seeds" and not place["experiment"]:
            counted = set().union(*(columns.get(column, set()) for column in SEEDS))
            wrong += [f"{name}: {seeds - counted} seeds"] * bool(counted and seeds - counted)
    return wrong


def listed_verdicts(key):
    """Read our value and the verdict of each claim from docs/findings.md."""
    section = (ROOT / findings.DOCS).read_text(encoding="utf-8").split(f"\n## {key}\n")[1]
    lines = section.split("\n## ")[0].splitlines()
    rows = [re.split(r"(?<!\\) ?\| ?", line.strip("| ")) for line in lines if CLAIM.match(line)]
    return {row[0].split(":")[0].split(" ")[0]: (row[2], row[3]) for row in rows if len(row) == 4}


CLAIM = re.compile(r"\| c\d+\w*(?: \(code check\))?: ")


def check_card(name, claim):
    """Check that a card gives the accepted range, the forecast, and names corrected intervals."""
    if claim.kind == "empirical" and name not in WITHOUT_RANGE:
        assert accepted_values(claim.drawn), name
    if claim.verdict in UNDECIDED:
        assert claim.power, name
    for interval in claim.drawn:
        assert interval.level <= LEVEL or "corrected" in interval.unit, (name, interval.name)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "cheap", [True, pytest.param(False, marks=pytest.mark.long)], ids=["cheap", "all"]
)
def test_captions_have_the_numbers_that_are_drawn(key, cheap):
    paper = load_paper(key, ROOT / "papers")
    values = list(drawn(key, cheap))
    assert values
    assert [line for artefact in values for line in disagreements(paper, *artefact)] == []


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[pytest.mark.long] * (key in DEAR_RUNS)) for key in KEYS]
)
def test_findings_have_the_verdicts_of_the_claims(key):
    for name in project().plan.paper(key).experiments:
        loaded(key, name)
    claims = {claim.id: claim for claim in content.claims(judging.judge(key, project()))}
    listed = listed_verdicts(key)
    assert listed
    for name, (ours, verdict) in listed.items():
        assert verdict.split(" (")[0] == claims[name].verdict, name
        assert ours.replace("\\|", "|") == claims[name].ours, name
        check_card(f"{key}/{name}", claims[name])
    assert {name for name in claims if claims[name].grade != "not run"} == listed.keys()


@pytest.mark.parametrize("key", KEYS)
def test_every_verdict_at_the_papers_size_names_three_other_choices(key):
    text = (ROOT / findings.DOCS).read_text(encoding="utf-8").split(f"\n## {key}\n")[1]
    rows = re.findall(
        r"^\| (c\d+\w*) (?:\|[^|\n]*){4}\|$", text.split("\n## ")[0], flags=re.MULTILINE
    )
    decided = {
        name
        for name, (_, verdict) in listed_verdicts(key).items()
        if "(" not in verdict.removesuffix(" (transfer)")
        and load_paper(key, ROOT / "papers").claims[name].kind == "empirical"
    }
    assert {name: rows.count(name) for name in decided} == dict.fromkeys(decided, 3)


@pytest.mark.parametrize("key", WITH_ALTERNATIVES)
def test_the_table_of_other_choices_has_all_its_runs(key):
    """An artefact that lacks a run is left out of the report without an error."""
    spec = load_paper(key, ROOT / "papers").artefacts["alternatives"]
    assert project().plan.paper(key).artefacts["alternatives"].experiments == spec.experiments


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=[pytest.mark.long] * (key in DEAR_RUNS)) for key in WITH_ALTERNATIVES],
)
def test_findings_have_the_table_of_other_choices(key):
    text = (ROOT / findings.DOCS).read_text(encoding="utf-8")
    paper = project().plan.paper(key)
    spec = paper.artefacts["alternatives"]
    used = {run: loaded(key, run).only(spec.cases) for run in spec.experiments}
    table = draw_function(paper, "alternatives")(used, paper).data
    for row in table.to_dict("records"):
        cells = [row[name] for name in ("claim", "verdict", "choice", "gives", "ours")]
        assert f"| {' | '.join(cells)} |" in text


def test_a_number_that_is_not_drawn_is_noticed():
    data = pd.DataFrame({"at": [0, 100], "alpha": [0.1, 10.0], "n": [3, 3]})
    rows = pd.DataFrame({"case": ["base"] * 3, "seed": [0, 1, 2]})
    summary = Summary(
        rows, {"settings": {"rounds": 100}, "samplers": {}, "cases": {"base": {}}}, {}
    )
    paper = load_paper("fraboni2021clustered", ROOT / "papers")
    template = "α = {dataset.partition.alpha}, {rounds} rounds; seeds: {seeds}"
    spec = paper.artefacts["figure2"].model_copy(update={"caption": template})
    paper = paper.model_copy(update={"artefacts": {"figure9": spec}})
    for caption, wrong in {
        "α = 0.1 and 10, 100 rounds; seeds: 3": 0,
        "α = 0.1, 100 rounds; seeds: 3": 1,  # one that is drawn is missing
        "α = 0.1 and 10, 200 rounds; seeds: 3": 2,  # not drawn, and the drawn one is missing
        "α = 0.1 and 10, 100 rounds; seeds: 7": 1,
    }.items():
        artefact = Artefact(data, caption=caption)
        assert len(disagreements(paper, "figure9", artefact, {"alpha": summary})) == wrong, caption
