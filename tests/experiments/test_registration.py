"""Twins with fresh seeds; digests of rules cover what decides, not how it is worded."""

import pytest
from tests.shared import PAPERS

from fedsampling.base.errors import InputError
from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.registration import FIRST_SEED, rule_digest, twin, with_seeds

EXPERIMENT = {
    "kind": "network",
    "title": "A",
    "samplers": {"md": {"name": "md", "m": 2}, "full": {"name": "full"}},
    "seeds": 3,
    "quick": {"seeds": 1},
    "reduced": {"rounds": 5, "samplers": {"md": {"m": 1}}},
}
CLAIM = {"parts": {"a": {}}, "margin": 1.0, "unit": "s", "cases": [], "experiments": ["x"]}


def test_a_twin_has_fresh_seeds_for_its_last_look_and_one_scale():
    fresh = twin(EXPERIMENT, {"looks": [3, 5], "samplers": {"full": None}}, "x")
    assert fresh["seeds"] == [FIRST_SEED + k for k in range(5)]
    assert fresh["samplers"] == {"md": {"name": "md", "m": 2}}
    assert (fresh["quick"], fresh["reduced"], "paper" in fresh) == (None, None, False)


def test_a_twin_at_reduced_scale_has_the_changes_of_that_scale():
    fresh = twin(EXPERIMENT, {"looks": [4], "scale": "reduced", "samplers": {"full": None}}, "x")
    assert fresh["paper"] is None
    assert fresh["reduced"]["rounds"] == 5
    assert fresh["reduced"]["samplers"] == {"md": {"m": 1}, "full": None}
    assert len(fresh["reduced"]["seeds"]) == 4


@pytest.mark.parametrize("looks", [None, [], [5, 3], [3, 3], 3, [3, "5"]])
def test_looks_must_be_increasing_numbers_of_seeds(looks):
    with pytest.raises(InputError, match=r"confirm\.x\.looks: must be a list of increasing"):
        twin(EXPERIMENT, {"looks": looks}, "x")


def test_a_second_plan_has_seeds_of_its_own():
    fresh = twin(EXPERIMENT, {"looks": [2], "first_seed": 2000}, "x")
    assert fresh["seeds"] == [2000, 2001]
    assert "first_seed" not in fresh
    for first in (999, "2000"):
        with pytest.raises(
            InputError, match=r"confirm\.x\.first_seed: must be an integer from 1000"
        ):
            twin(EXPERIMENT, {"looks": [2], "first_seed": first}, "x")


def test_an_earlier_look_has_the_first_seeds_at_every_scale():
    fresh = twin(EXPERIMENT, {"looks": [2, 4], "scale": "reduced"}, "x")
    earlier = with_seeds(fresh, 2)
    assert earlier["seeds"] == earlier["reduced"]["seeds"] == [FIRST_SEED, FIRST_SEED + 1]


def test_the_digest_covers_parts_margin_and_twins_but_no_prose():
    twins = {"confirm_x": twin(EXPERIMENT, {"looks": [3]}, "x")}
    digest = rule_digest({**CLAIM, "rule": "old words"}, twins)
    retitled = {"confirm_x": {**twins["confirm_x"], "title": "B"}}
    assert rule_digest({**CLAIM, "rule": "new words"}, retitled) == digest
    assert rule_digest({**CLAIM, "margin": 2.0}, twins) != digest
    longer = {"confirm_x": twin(EXPERIMENT, {"looks": [3, 5]}, "x")}
    assert rule_digest(CLAIM, longer) != digest


@pytest.mark.parametrize("key", sorted(path.parent.name for path in PAPERS.glob("*/paper.yaml")))
def test_all_twins_of_a_claim_have_the_same_looks(key):
    paper = load_paper(key, PAPERS)
    for name in paper.claims:
        twins = paper.twins_of(name).values()
        assert len({tuple(paper.experiments[twin]["looks"]) for twin in twins}) <= 1, name


@pytest.mark.parametrize("key", sorted(path.parent.name for path in PAPERS.glob("*/paper.yaml")))
def test_a_claim_has_registered_parts_or_says_why_no_runs_can_decide_it(key):
    paper = load_paper(key, PAPERS)
    for name, claim in paper.claims.items():
        if claim.kind == "empirical":
            assert bool(claim.parts) != bool(claim.unreachable), name
