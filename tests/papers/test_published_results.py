"""Captions and findings against the numbers that the published runs give.

The long tests draw every artefact and judge every claim; the others skip the slow ones.
"""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from fedsampling.base.text import show
from fedsampling.evidence.statistics import LEVEL
from fedsampling.evidence.verdicts import UNDECIDED
from fedsampling.experiments.papers import draw_function, judge_function, load_paper
from fedsampling.report import content, findings
from fedsampling.report.drawing.saving import PLACEHOLDER, SETTING_COLUMNS, filled_caption
from fedsampling.report.names import paper_name
from fedsampling.report.overview import readme_table
from fedsampling.workflow import draw

from .shared import KEYS, PAPERS, behind, project, published

ROOT = PAPERS.parent
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
# Claims that were added with their alternatives in mind, that are judged over all their readings,
# or that have no run that decides.
WITHOUT_ALTERNATIVES = {
    "chen2022optimal": {"c6_writers", "c7_writers"},
    "fraboni2021clustered": {"c11", "c12", "c13"},
    "harshvardhan2025latency": {f"c{n}" for n in (6, 7, 8, 9, 15, 16, 17, 18, 19, 20, 23)},
}
# Columns of an artefact's CSV with the number of seeds.
SEEDS = ("n", "runs", "size", "seeds")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
CLAIM = re.compile(r"\| c\d+\w* ")
# Names that contain numbers, and numbers that no run decides.
NAMES = re.compile(
    r"\b(?:Figures?|Tables?|Theorem|Lemma|equations?|sections?|Dataset|Algorithm|Appendix)\s*"
    r"[\dA-Z(][\w.()]*(?:(?:, | and | to |[–-])\(?\d+\)?)*|\(\d+\)(?:[–-]\(\d+\))?|at 5 %|95 %|10³"
    r"|CIFAR-\d+|\bijcnn1|\b[Lc]\d+\b|(?:et al\.|Demšar) \d{4}|= 0(?![.\d])|n/2"
)
FIXED = {  # numbers in captions that are neither settings nor in the CSV
    "chen2022optimal/exchanges": {"8"},
    "fraboni2021clustered/figure1": {"10"},  # the slip of the paper's caption
    "fraboni2021clustered/figure2": {"50"},  # rounds of a rolling mean, at most
    "fraboni2021clustered/figure6": {"50"},
    "fraboni2021clustered/figure8": {"50"},
    "fraboni2021clustered/figure10": {"50"},
    "fraboni2022general/figure2": {"600", "100"},  # the paper's insets
    "fraboni2022general/figure7": {"5"},
    "harshvardhan2025latency/figure1_sensitivity": {"1,000"},  # seconds, the threshold
    "rizk2022importance/sensitivity": {"0.1"},  # that all its populations share
    "rizk2022importance/figure2": {"1"},  # B_k = E_k, as the paper has them
}


def drawn(key, cheap):
    """Draw the artefacts that have their runs; if cheap, those that take no seconds."""
    paper = project().plan.paper(key)
    dear = {"alternatives", *DEAR_RUNS.get(key, ()), *DEAR_ARTEFACTS.get(key, ())}
    for name, spec in paper.artefacts.items():
        if not (cheap and dear & {name, *spec.experiments}):
            used = behind(key, spec)
            yield name, draw_function(paper, name)(used, paper), used
            plt.close("all")


def numbers(values):
    """Format numbers as captions do."""
    plain = [value for value in values if isinstance(value, (int, float, np.number))]
    return {f"{int(x):,}" if x == int(x) else f"{x:g}" for x in plain if np.isfinite(x)}


def count_of(text):
    return int(text.replace(",", ""))


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
    seeds = set()
    for summary in used.values():
        seeds |= numbers(summary.rows.groupby("case", observed=True)["seed"].nunique())
        printed |= settings(summary, data)
    extra = captioned - printed.union(seeds, *columns.values())
    wrong = [f"{name}: {number} is neither drawn nor the paper's" for number in sorted(extra)]
    for place in PLACEHOLDER.finditer(template):
        column = "rounds" if place["path"] == "rounds" else SETTING_COLUMNS.get(place["path"])
        if column in columns and not place["experiment"]:
            missing = sorted(columns[column] - captioned)
            wrong += [f"{name}: {column} {number} is drawn" for number in missing]
        if place["path"] == "seeds" and not place["experiment"]:
            counted = set().union(*(columns.get(column, set()) for column in SEEDS))
            ends = {min(seeds, key=count_of), max(seeds, key=count_of)}  # a caption has the range
            wrong += [f"{name}: {ends - counted} seeds"] * bool(counted and ends - counted)
    return wrong


def listed_verdicts(key):
    """Read our value and the verdict of each claim from docs/findings.md."""
    name = paper_name(load_paper(key, PAPERS))
    section = (ROOT / findings.DOCS).read_text(encoding="utf-8").split(f"\n## {name}\n")[1]
    lines = section.split("\n## ")[0].splitlines()
    rows = [re.split(r"(?<!\\) ?\| ?", line.strip("| ")) for line in lines if CLAIM.match(line)]
    return {row[0].split(" ")[0]: (row[2], row[3]) for row in rows if len(row) == 4}


def check_card(name, claim):
    """Check that a card gives the accepted range, the forecast, and names corrected intervals."""
    if claim.kind == "empirical" and claim.drawn and name not in WITHOUT_RANGE:
        assert any((row.least, row.most) != (None, None) for row in claim.drawn), name
    waits = "only one reading" in claim.reason or "are not finished" in claim.reason
    is_reachable = claim.price is None or claim.price.command
    if claim.verdict in UNDECIDED and is_reachable and not waits and not claim.confirmed:
        assert claim.power, name  # more seeds would decide
    for interval in claim.drawn:
        assert interval.level <= LEVEL or "corrected" in interval.unit, (name, interval.name)


def cards_of_chen2022optimal(table):
    means = table.groupby(["case", "sampler"])["accuracy"].mean().unstack()
    gaps = means["optimal"] - means["uniform"]
    return gaps.rename(lambda case: f"optimal − uniform, Dataset {case[-1]}")


def cards_of_fraboni2021clustered(table):
    late = table[table["at"] >= table["at"].max() / 2].groupby(["metric", "sampler"])["mean"].mean()
    return {
        f"Algorithm {n} {metric}": sign * (late[metric, "md"] - late[metric, f"algorithm{n}"])
        for n in (1, 2)
        for metric, sign in (("loss", 1), ("accuracy", -1))
    }


def cards_of_fraboni2022general(table):
    means = table[table["case"] == "equal"].groupby("clients")["mean"].mean()
    return means.rename(lambda clients: f"{clients} clients")


def cards_of_rizk2022importance(table):
    steady = table[table["panel"] == "to steady state"]
    late = steady[steady["at"] >= 0.8 * steady["at"].max()].groupby("sampler")["mean"].mean()
    decibels = 10 * np.log10(late)
    return {"FedAvg over true, simulated": decibels["standard"] - decibels["isfedavg-optimal"]}


@pytest.mark.parametrize(
    ("key", "name", "numbers_of"),
    [
        ("chen2022optimal", "c1_writers", cards_of_chen2022optimal),
        ("fraboni2021clustered", "c10", cards_of_fraboni2021clustered),
        ("fraboni2022general", "c1", cards_of_fraboni2022general),
        pytest.param(
            "rizk2022importance", "c1", cards_of_rizk2022importance, marks=pytest.mark.long
        ),
    ],
)
def test_a_card_has_the_numbers_of_the_figure_that_it_links(key, name, numbers_of):
    """A claim is judged by single seeds, its figure shows means: both must give one number.

    A figure may draw another of the claim's readings than the main one.
    """
    paper = load_paper(key, PAPERS)
    spec = paper.claims[name]
    artefact = paper.artefacts[spec.artefact]
    runs = behind(key, spec if spec.cases else artefact, spec.experiments or artefact.experiments)
    claim = judge_function(paper, name)(runs, spec, paper)
    drawn = draw_function(paper, spec.artefact)(behind(key, artefact), paper)
    figure = dict(numbers_of(drawn.data))
    plt.close("all")
    cards = [claim.drawn, *(reading.drawn for reading in claim.readings)]
    values = [{row.name: row.value for row in card} for card in cards]
    assert figure in [
        pytest.approx({each: card[each] for each in figure}, abs=1e-9) for card in values
    ]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "cheap", [True, pytest.param(False, marks=pytest.mark.long)], ids=["cheap", "all"]
)
def test_artefacts_are_of_their_kind_and_captions_have_the_numbers_drawn(key, cheap):
    paper = load_paper(key, PAPERS)
    values = list(drawn(key, cheap))
    assert values
    for name, artefact, _ in values:
        is_figure = paper.artefacts[name].kind == "figure"
        assert (artefact.figure is not None) == bool(artefact.alt) == is_figure, name
        assert len(artefact.data), name
        assert not any("nan" in note for note in artefact.notes), name
    assert [line for artefact in values for line in disagreements(paper, *artefact)] == []


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[pytest.mark.long] * (key in DEAR_RUNS)) for key in KEYS]
)
def test_pages_have_the_verdicts_of_the_claims(key):
    """Findings, history, the README's table and the seeds of the cards."""
    paper = project().plan.paper(key)
    runs = {name: published(key, name) for name in paper.experiments}
    judged = content.claims(draw.judge_claims(paper, project(), runs))
    claims = {claim.id: claim for claim in judged}
    listed = listed_verdicts(key)
    for name, (ours, verdict) in listed.items():
        assert verdict == findings.with_grade(claims[name]), name
        assert ours == findings.main_number(claims[name]), name
        check_card(f"{key}/{name}", claims[name])
    tested = {c.id for c in judged if c.kind == "empirical" and c.grade != "not run"}
    assert tested == listed.keys()
    papers = {key: (load_paper(key, PAPERS), judged)}
    row = readme_table(papers).splitlines()[-1]
    assert row in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    past = findings.history(papers)
    text = (ROOT / findings.HISTORY_DOCS).read_text(encoding="utf-8")
    assert set(past.splitlines()) <= set(text.splitlines())
    for claim in judged:
        counts = {int(n) for n in re.findall(r"\((\d+) seeds\)", claim.ours)}
        assert counts <= set(range(claim.seeds, claim.most_seeds + 1)), claim.id


def test_the_readme_counts_the_claims_of_every_paper():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for key in KEYS:
        numbers = [re.match(r"c(\d+)", name)[1] for name in load_paper(key, PAPERS).claims]
        line = next(row for row in text.splitlines() if key in row and "| c1–" in row)
        assert line.endswith(f"| c1–c{max(map(int, numbers))} |"), key


def test_every_claim_that_the_list_of_sentences_names_exists():
    text = (ROOT / "docs" / "sentences.md").read_text(encoding="utf-8")
    for key in KEYS:
        paper = load_paper(key, PAPERS)
        section = text.split(f"\n## {paper_name(paper)}\n")[1].split("\n## ")[0]
        named = set(re.findall(r"\bc\d+(?:_\w+)?\b", section))
        for first, last in re.findall(r"\bc(\d+) to c(\d+)\b", section):
            named |= {f"c{number}" for number in range(int(first), int(last) + 1)}
        assert named == set(paper.claims), key


ROWS = ("c2", "c3", "c4", "c5", "c11", "c12", "c13", "c14")
SWEPT = {"c21": "largest rotation (°)", "c22": "largest speed (MB/s)"}
LABELS = {"Submodular": "DelayHetSubmodular", "Sampling": "DelayHetSampling"}


@pytest.mark.long
def test_cards_have_the_seconds_of_the_tables_that_they_link():
    key = "harshvardhan2025latency"
    paper = project().plan.paper(key)
    for name in ("c1", "c10", *ROWS, *SWEPT):
        spec = paper.claims[name]
        artefact = paper.artefacts[spec.artefact]
        used = {run: published(key, run) for run in (*artefact.experiments, *spec.experiments)}
        finding = judge_function(paper, name)(used, spec, paper)
        table = draw_function(paper, spec.artefact)(behind(key, artefact), paper).data
        column = SWEPT.get(name)
        if column is None:
            printed = {row.artefact: row for row in paper.reports if row.claim == name}
            data = printed[spec.artefact].quantity.split(" to ")[0]
            table = table[(table["data"] == data) & (table["clock"] == "paper's")]
        compared = 0
        for row in table.to_dict("records"):
            label = LABELS.get(row["scheme"], row["scheme"])
            words = re.findall(rf"(?:^|; ){label} (.*?)(?=; |$)", finding.ours)
            if not words or label not in finding.ours:
                continue
            if column:
                shown = re.search(rf"(?:^| ){row[column]}: ([\d,.]+ s)", words[0])[1]
            else:
                shown = words[0]
            if row["reached"] == row["runs"]:
                assert shown == f"{show(row['seconds'])} s", (name, label)
            else:
                missed = row["runs"] - row["reached"]
                assert shown == f"misses the target in {missed} of {row['runs']} runs", name
            compared += 1
        assert compared >= 4, name


@pytest.mark.parametrize("key", WITH_ALTERNATIVES)
def test_the_table_of_other_choices_has_all_its_runs(key):
    """An artefact that lacks a run is left out of the report without an error."""
    spec = load_paper(key, PAPERS).artefacts["alternatives"]
    assert project().plan.paper(key).artefacts["alternatives"].experiments == spec.experiments


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=[pytest.mark.long] * (key in DEAR_RUNS)) for key in WITH_ALTERNATIVES],
)
def test_every_verdict_names_other_choices(key):
    paper = project().plan.paper(key)
    used = behind(key, paper.artefacts["alternatives"])
    counts = draw_function(paper, "alternatives")(used, paper).data["claim"].value_counts()
    for name in listed_verdicts(key).keys() - WITHOUT_ALTERNATIVES.get(key, set()):
        assert counts.get(name, 0) >= 2, name
