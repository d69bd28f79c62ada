"""The table of choices that could change verdicts, from made-up courses."""

import pandas as pd
import pytest
from papers.harshvardhan2025latency.figures_readings import alternatives
from papers.harshvardhan2025latency.runtimes import PROPOSED

from fedsampling.evidence.summaries import Summary

from .courses import NAMES, PAPER, draws, joined, summary

ROW = {"submodular": 20, "sampling": 22, "random": 30, "flanp": 9}
STAGES = {"flanp-first-10": 12, "flanp-first-10-0.1": 11, "flanp-first-2-0.0001": 99}
SECONDS = {
    "heterogeneity": 2.0,
    "minnorm": 0.1,
    "trust-constr": 5.0,
    "approx_opt": 9.0,
    "approx_opt_slsqp": 0.1,
}


def overheads():
    rows = [
        (case, "overhead", seed, 0, name, (1 + 0.01 * seed) * value)
        for case in ("quadratic", "shakespeare")
        for name, value in SECONDS.items()
        for seed in range(3)
    ]
    return Summary(pd.DataFrame(rows, columns=NAMES), {}, {})


@pytest.fixture(scope="module")
def runs():
    sweeps = {"rotation": ("degrees-30", "degrees-60"), "links": ("speed-1", "speed-10")}
    one_misses = joined(
        draws("quadratic_problems", ROW | {"flanp": 99}, problems=2),
        summary(
            "quadratic_problems", ROW | {"flanp": 99, "submodular": 99}, "synthetic-p2", seeds=(0,)
        ),
    )
    return {
        "quadratic": summary("quadratic", {"random": 10}, "synthetic"),
        "quadratic_variants": summary("quadratic_variants", STAGES, "synthetic"),
        "quadratic_no_delays": summary("quadratic_no_delays", {"random": 8, "flanp": 99}, "none"),
        "quadratic_problems": one_misses,
        "quadratic_problems_flanp": draws("quadratic_problems_flanp", {"flanp-first-10": 9}),
        "quadratic_problems_sampling": draws("quadratic_problems_sampling", {"sampling-100": 22}),
        **{
            name: summary(name, ROW, "synthetic")
            for name in (
                "dirichlet_mnist",
                "rotated_mnist",
                "dirichlet_fashion_mnist",
                "rotated_fashion_mnist",
            )
        },
        "rotated_mnist_flanp": summary(
            "rotated_mnist_flanp", {"flanp-first-10-0.5": 40, "flanp-first-2-0.1": 9}, "synthetic"
        ),
        "rotated_fashion_mnist_sampling": summary(
            "rotated_fashion_mnist_sampling", {"sampling-start": 22}, "synthetic"
        ),
        **{
            name: joined(*(summary(name, dict.fromkeys(PROPOSED, 5), case) for case in cases))
            for name, cases in sweeps.items()
        },
        **{
            f"{name}_sampling": joined(
                *(summary(f"{name}_sampling", {"sampling-start": 5}, case) for case in cases)
            )
            for name, cases in sweeps.items()
        },
        "links_model": joined(
            *(
                summary("links_model", {"submodular": rounds, "sampling-start": rounds}, case)
                for case, rounds in (("speed-1", 8), ("speed-10", 4))
            )
        ),
        "overhead": overheads(),
    }


@pytest.fixture(scope="module")
def table(runs):
    return alternatives(runs, PAPER).data.set_index(["claim", "choice"])


def test_every_claim_has_three_other_choices(table):
    counts = table.groupby(level="claim", sort=False).size()
    assert counts.to_dict() == dict.fromkeys(
        ("c1", "c2", "c3", "c4", "c5", "c20", "c21", "c22", "c24"), 3
    )
    assert not table[["verdict", "gives"]].isna().any(axis=None)


def test_verdicts_over_open_choices_are_counted(table):
    assert table.loc[("c1", "stages of FLANP × readings of DelayHetSampling"), "ours"] == (
        "reproduced in 2 and contradicted in 2"
    )
    assert (
        table.loc[("c3", "stages of FLANP × readings of DelayHetSampling"), "gives"] == "2 verdicts"
    )
    assert table.loc[("c2", "other stages of FLANP"), "gives"] == "not run"
    assert table.loc[("c5", "readings of DelayHetSampling"), "ours"] == "contradicted in 2"


def test_another_choice_is_judged_by_the_rule(table):
    assert table["verdict"].xs("c2").unique().tolist() == ["inconclusive"]
    only = "only the proposed samplers may be first, not FLANP"
    assert table.loc[("c2", only), "gives"] == "contradicted"
    assert table.loc[("c4", "FLANP may be first, too"), "gives"] == "reproduced"
    without = "without the 1 draw in which DelayHetSubmodular misses the target"
    assert "random over DelayHetSubmodular 1.50" in table.loc[("c1", without), "ours"]
    means = table.loc[("c21", "the order of the means decides")]
    assert means[["gives", "ours"]].tolist() == [
        "inconclusive",
        "Undecided for DelayHetSubmodular and DelayHetSampling",
    ]
    assert table.loc[("c22", "its unstated choices"), "ours"].count(" in ") == 3
    assert table.loc[("c20", "FLANP begins with 10 clients"), "ours"].startswith("1.20 times")
