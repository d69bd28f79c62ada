"""Numbers in the list of sentences, in findings and in choices, against tables and runs."""

import numpy as np
import pytest
from papers.harshvardhan2025latency.claims_text import BASELINES
from papers.harshvardhan2025latency.figures_network import sensitivity
from papers.harshvardhan2025latency.printed_tables import DATA, PROPOSED, printed, printed_row
from papers.harshvardhan2025latency.time_to_target import runtimes, target

from fedsampling.base.text import show
from fedsampling.samplers.delayhet import DelayHetSubmodular

from ..shared import PAPERS, published
from .courses import PAPER

SIZES = {  # clients of each experiment
    "quadratic": 100,
    "quadratic_problems": 100,
    "dirichlet_mnist": 100,
    "femnist": 180,
    "shakespeare": 143,
}


def sentence(*words):
    """Return the only line of the list of sentences that contains all words."""
    text = (PAPERS.parent / "docs" / "sentences.md").read_text(encoding="utf-8")
    (line,) = (row for row in text.splitlines() if all(word in row for word in words))
    return line


def seconds_of(experiment, sampler, row):
    """Return a row's seconds to the target, by case and seed; infinite for a miss."""
    runs = published(PAPER.key, experiment)
    table = runtimes(runs, target(PAPER, row, {row: runs}))
    seconds = table[table["sampler"] == sampler].set_index(["case", "seed"])["counted"]
    assert len(seconds)
    return seconds


def missed(*names):
    """Return for each run of a sampler whether it missed the target of a row."""
    return np.isinf(seconds_of(*names))


def test_sentences_without_a_claim_have_the_numbers_of_the_papers_tables():
    best = {}
    for name in DATA:
        row = printed_row(PAPER, "table2", name).numbers
        best[name] = min(row[x] for x in BASELINES) / min(row[x] for x in PROPOSED)
    above = [name for name, factor in best.items() if factor > 20]
    assert above == ["quadratic", "shakespeare"]
    line = sentence("at most 20 times better")
    assert all(f"{best[name]:.1f} ({DATA[name]})" in line for name in above)

    pairs = (
        [f"{target(PAPER, f'{kind}_{data}'):.2f}" for kind in ("dirichlet", "rotated")]
        for data in ("mnist", "fashion_mnist", "cifar10")
    )
    line = sentence("target accuracies")
    for higher, lower in pairs:
        assert float(higher) > float(lower)
        assert f"{higher} and {lower}" in line

    overheads = printed(PAPER, "overheads")
    seconds = [row["approx_opt"].number for row in overheads.values()]
    slow = [number for number in seconds if number > 3600]
    assert [f"{number:,.0f} s" in sentence("at most 1 hour") for number in slow] == [True]

    once, row = overheads["quadratic"], printed_row(PAPER, "table1", "quadratic").numbers
    line = sentence("overhead is much smaller")
    for name, solver in (("submodular", "minnorm"), ("sampling", "trust-constr")):
        seconds = once["heterogeneity"].number + once[solver].number
        assert f"{seconds:.4g} s" in line
        assert f"{seconds / (10 * row[name]):.0f} %" in line


def test_c24_reports_the_ratio_of_all_three_columns():
    text = PAPER.claims["c24"].reported
    for row in printed(PAPER, "overheads").values():
        rest = sum(number.number for task, number in row.items() if task != "approx_opt")
        assert show(row["approx_opt"].number / rest) in text


@pytest.mark.long
def test_the_findings_name_the_settings_that_move_the_tail_most():
    table = sensitivity(published(PAPER.key, "sensitivity"))
    moved = (table["share"] - table["share"].iloc[0]).abs().groupby(table["parameter"]).max()
    assert set(moved.nlargest(4).index) == {"gain", "model_bytes", "log_mean", "log_sd"}


def test_weights_of_divfl_decide_quadratic_as_the_choice_says():
    assert not missed("quadratic", "divfl", "quadratic").any()
    assert missed("quadratic_variants", "divfl-weights-covered", "quadratic").all()


def test_flanp_with_two_clients_does_as_the_findings_say():
    label, ratios = "flanp-first-2-0.1", []
    for name in ("dirichlet_mnist_flanp", "dirichlet_mnist_flanp_nycmesh", "rotated_mnist_flanp"):
        row = name.partition("_flanp")[0]
        ratios += list((seconds_of(name, label, row) / seconds_of(row, "flanp", row)).dropna())
    assert len(ratios) == 9
    assert (round(min(ratios)), round(max(ratios))) == (2, 5)
    some = missed("dirichlet_fashion_mnist_flanp", label, "dirichlet_fashion_mnist")
    assert set(some) == {True, False}
    for row in ("dirichlet_cifar10", "rotated_cifar10"):
        assert missed(f"{row}_flanp", label, row).all()


def test_delayhet_submodular_misses_on_nycmesh_where_the_findings_say():
    for row in ("dirichlet_cifar10", "rotated_cifar10", "femnist"):
        assert missed(row, "submodular", row).loc["nycmesh"].all()
    some = missed("shakespeare", "submodular", "shakespeare").loc["nycmesh"]
    assert set(some) == {True, False}


def test_the_expected_clients_of_delayhet_submodular_lie_in_the_published_range():
    shares = []
    for name in ("quadratic", "quadratic_problems", "dirichlet_mnist", "femnist", "shakespeare"):
        runs = published(PAPER.key, name)
        rows = runs.select("submodular", metric="clients", since=1)
        shares += list(rows.groupby("case")["value"].mean() / SIZES[name])
    assert round(min(shares), 2) == 0.01
    assert 0.5 < max(shares) < 0.6
    assert min(shares) < DelayHetSubmodular().expected_clients(100, 1) / 100 < max(shares)


def test_the_proof_on_linear_regression_has_its_example_right():
    A, w = np.array([1.0, 3.0]), np.array([0.0, 1.0])
    printed_minimiser, minimiser = (A * w).mean(), (A * w).mean() / A.mean()
    assert (printed_minimiser, minimiser) == (1.5, 0.75)
    assert (A * (printed_minimiser - w)).mean() == 1.5
    gamma = np.subtract(*(A * (minimiser - w)))
    assert gamma == np.subtract(*A) * minimiser - np.subtract(*(A * w)) == 1.5
    assert gamma != np.subtract(*A) / A.mean() * minimiser + np.subtract(*(A * w))
