"""What the runs behind a claim can say, and when a recomputed run agrees with the stored one."""

import pandas as pd

from fedsampling.evidence.provenance import assess_runs
from fedsampling.evidence.summaries import Summary

OFFICIAL = {"scale": "reduced", "data": "official"}
WHOLE = {"small": {"seeds": 30, "cases": {"equal": {}, "samples": {}}}, "large": {"seeds": 30}}


def _summary(seeds, scale="reduced", data=("official",), unverified=False):
    """Return runs of two schemes, with `seeds` by case."""
    rows = [
        (case, sampler, seed)
        for case, count in seeds.items()
        for sampler in ("md", "uniform")
        for seed in range(count)
    ]
    provenance = {"scale": scale, "run_data": list(data), "unverified": unverified}
    return Summary(pd.DataFrame(rows, columns=["case", "sampler", "seed"]), {}, provenance)


def test_three_seeds_of_some_cases_indicate_and_say_what_they_cover():
    runs = {"small": _summary({"equal": 5, "samples": 3}), "large": _summary({"base": 1})}
    result = assess_runs(runs, WHOLE, (), OFFICIAL)
    assert result.preliminary
    assert (result.scale, result.seeds) == ("reduced", 3)
    assert result.covers == "1 of 2 experiments, 2 of 3 cases"


def test_fewer_seeds_indicate_nothing_unless_the_paper_has_no_more():
    runs = {"small": _summary({"equal": 2}), "large": _summary({"base": 1})}
    result = assess_runs(runs, WHOLE, (), OFFICIAL)
    assert not result.preliminary
    assert result.obstacles == ("reduced scale", "fewer than 3 seeds")
    one_seed = {name: {**fields, "seeds": [7]} for name, fields in WHOLE.items()}
    assert assess_runs(runs, one_seed, (), OFFICIAL).preliminary


def test_neither_quick_scale_nor_stand_ins_indicate_anything():
    seeds = {"equal": 50, "samples": 50}
    quick = {"small": _summary(seeds, "quick")}
    assert not assess_runs(quick, WHOLE, (), {"scale": "quick", "data": "official"}).preliminary
    embedded = {"small": _summary(seeds, data=["embedded"])}
    assert not assess_runs(embedded, WHOLE, (), OFFICIAL).preliminary


def test_an_unverified_copy_gives_preliminary_evidence_only():
    runs = {"small": _summary({"equal": 30, "samples": 30}, "paper", unverified=True)}
    result = assess_runs(runs, {"small": WHOLE["small"]}, (), OFFICIAL | {"scale": "paper"})
    assert result.obstacles == ("unverified copy",)
    assert result.preliminary
    assert result.covers == ""


def test_only_the_cases_that_a_claim_rests_on_are_counted():
    runs = {"small": _summary({"equal": 5}), "large": _summary({"base": 5})}
    assert assess_runs(runs, WHOLE, ["equal"], OFFICIAL).covers == ""
    assert assess_runs(runs, WHOLE, (), OFFICIAL).covers == "2 of 3 cases"


def test_what_a_claim_computes_itself_stands_but_at_quick_scale():
    assert assess_runs({}, {}, (), OFFICIAL).obstacles == ()
    assert assess_runs({}, {}, (), {"scale": "quick", "data": "none"}).obstacles == ("quick scale",)
