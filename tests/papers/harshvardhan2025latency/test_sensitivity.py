"""Which orderings are robust, from made-up courses."""

import pytest

from papers.harshvardhan2025latency import figures_sensitivity as page

from .courses import PAPER, joined, summary

BASE = {"submodular": 5, "sampling": 6, "random": 10, "flanp": 20}
SHARED = {"synthetic": BASE | {"submodular": 99}, "nycmesh": BASE | {"random": 4}}
OWN = {"flanp-first-5-0.1": 8, "random-m-5": 12}


@pytest.fixture(scope="module")
def summaries():
    shared = [
        summary("quadratic_sensitivity", rounds, f"{delays}-step-0.002")
        for delays, rounds in SHARED.items()
    ]
    variants = [summary("quadratic_variants", OWN, delays) for delays in SHARED]
    base = [summary("quadratic", BASE, delays) for delays in SHARED]
    return {
        "quadratic": joined(*base),
        "quadratic_sensitivity": joined(*shared),
        "quadratic_variants": joined(*variants),
    }


def test_a_setting_of_all_schemes_has_its_own_random_selection(summaries):
    table = page.varied(summaries, PAPER)
    over_random = table.set_index(["delays", "setting", "scheme"])["over_random"]
    assert over_random["nycmesh", "learning rate 0.002", "sampling"] == pytest.approx(6 / 4)
    assert over_random[
        "synthetic", "FLANP: 5 first clients, stages end at 0.1 of the start", "flanp"
    ] == pytest.approx(8 / 10)
    assert over_random["synthetic", "the paper", "flanp"] == pytest.approx(3.5 / 0.714)


def test_orderings_are_counted(summaries):
    table = page.varied(summaries, PAPER)
    orders = page.orderings(table[table["delays"] == "synthetic"])
    assert orders["DelayHetSubmodular faster than random in 0 of 1 settings"] == ""
    exception = "not 5 first clients, stages end at 0.1 of the start"
    assert orders["FLANP slower than random in 1 of 2 settings"] == exception
    assert [*orders][-1] == "a proposed sampler is fastest in 3 of 3"


def test_what_is_missed_stands_at_the_edge(summaries):
    artefact = page.quadratic_sensitivity(summaries, PAPER)
    hollow = [line for line in artefact.figure.axes[0].lines if line.get_mfc() == "none"]
    assert sum(len(line.get_xdata()) for line in hollow) == 1
    assert artefact.notes[0].startswith("synthetic delays: DelayHetSubmodular")
