"""Rules: parts, orders, equivalences, and claims over open choices."""

import numpy as np
import pytest

from fedsampling.evidence.rules import (
    above,
    close,
    equivalence,
    ordering,
    over_choices,
    stated,
    verdict,
)
from fedsampling.evidence.statistics import Estimate, difference
from fedsampling.evidence.verdicts import Finding, Interval, intervals

HOLDS, FAILS = Finding("reproduced", "1", "Yes."), Finding("contradicted", "2", "No.")
OPEN = Finding("inconclusive", "3", "Unclear.")


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ({"a": HOLDS, "b": HOLDS}, "reproduced"),
        ({"a": OPEN, "b": OPEN}, "inconclusive"),
        ({"a": HOLDS, "b": OPEN}, "inconclusive"),
        ({"a": HOLDS, "b": FAILS}, "depends on unstated choices"),
        ({"a": HOLDS, "b": FAILS, "c": FAILS, "d": OPEN}, "depends on unstated choices"),
    ],
)
def test_readings_that_disagree_make_a_claim_depend_on_them(readings, expected):
    finding = over_choices(readings, main="a")
    assert finding.verdict == expected
    assert finding.ours == readings["a"].ours
    verdicts = {reading.setting: reading.verdict for reading in finding.readings}
    assert verdicts == {name: reading.verdict for name, reading in readings.items()}
    if len(readings) == 4:
        assert finding.reason.endswith(": 1 reproduced, 2 contradicted and 1 inconclusive.")


def test_parts_hold_fail_or_stay_open_by_their_intervals():
    wide, high, low = Estimate(0.1, -1, 1, 5), Estimate(2, 1.5, 2.5, 5), Estimate(-2, -3, -1, 5)
    estimates = (wide, high, low)
    assert [above(estimate, 0.5) for estimate in estimates] == ["open", "holds", "fails"]
    assert [above(estimate, 2) for estimate in estimates] == ["fails", "open", "fails"]
    assert [close(e, e, 2, 0.6) for e in estimates] == ["fails", "holds", "fails"]
    assert [stated(part) for part in (True, False, None)] == ["holds", "fails", "open"]
    nothing = Estimate(1, np.nan, np.nan, 1)
    assert [above(nothing, 0), close(nothing, nothing, 1, 9)] == ["open"] * 2
    touching = Estimate(1, 0.5, 1.5, 5)
    assert [above(touching, bound) for bound in (0.5, 1.5)] == ["open"] * 2


def test_equivalence_holds_at_5_percent_and_fails_by_corrected_intervals():
    """Over five seeds: ±0.95 at 90 %, ±1.24 at 95 %, and ±1.56 at 1 − 5 %/2."""
    noise = np.array([-1, -1, 0, 1, 1])
    near, far = (noise, np.zeros(5)), (noise + 2.4, np.zeros(5))

    def judged(margin, **pairs):
        return equivalence(pairs, margin, "loss", difference, why={}, partly=True)

    assert judged(1, one=near, two=far).reason == "It holds for one; undecided for two."
    assert judged(0.9, one=near, two=far).verdict == "inconclusive"
    assert judged(1, two=far).verdict == "contradicted"
    (drawn,) = judged(1, one=near).drawn
    assert (drawn.unit, drawn.paper, drawn.least, drawn.most, drawn.level) == (
        "loss", 0, -1, 1, 0.95,
    )  # fmt: skip
    assert judged(1).verdict == "not run"


@pytest.mark.parametrize(("seeds", "part"), [(4, "open"), (5, "holds")])
def test_seeds_without_any_spread_are_equal_by_their_number(seeds, part):
    digits = np.full(seeds, 10.0)
    finding = equivalence({"digits": (digits, digits)}, 0.1, "ratio")
    assert finding.parts == {"digits": part}
    assert equivalence({"digits": (digits, 2 * digits)}, 0.1, "ratio").parts == {"digits": "open"}


def test_an_equivalence_has_one_method_for_all_intervals():
    """Student's intervals are symmetric; the bootstrap's of skewed numbers are not."""
    skewed = np.exp(np.arange(20) / 5)
    few = (np.array([-1, -1, 0, 1, 1]), np.zeros(5))

    def asymmetry(**pairs):
        row = equivalence({"many": (skewed, np.zeros(20)), **pairs}, 1, "loss", difference).drawn[0]
        return abs(row.low + row.high - 2 * row.value)

    assert asymmetry() > 0.1
    assert asymmetry(few=few) < 1e-9


def test_an_order_is_reproduced_if_every_gap_lies_above_the_bound():
    gaps = {"a": Estimate(2, 1.5, 2.5, 5), "b": Estimate(1, 0.4, 1.6, 5)}
    finding = ordering(gaps, 0.3, "loss", {"reproduced": "All do."})
    assert (finding.verdict, finding.reason) == ("reproduced", "All do.")
    assert finding.ours == "loss: a: 2.00 [1.50, 2.50] (5 seeds); b: 1.00 [0.400, 1.60] (5 seeds)"
    assert finding.drawn == intervals(gaps, "loss (Holm-corrected)", least=0.3)
    assert ordering(gaps, 0.5, "loss").verdict == "partly reproduced"
    assert ordering(gaps, 1.7, "loss").verdict == "contradicted"
    assert ordering(gaps, 1.7, "loss", contrary_decides=False).verdict == "contradicted"
    nothing = Finding("not run", "loss: not run", "There is nothing to compare.")
    assert ordering({}, 0, "loss") == nothing


@pytest.mark.parametrize(
    ("parts", "rule", "expected"),
    [
        (["holds", "holds"], {}, "reproduced"),
        (["holds", "open"], {}, "partly reproduced"),
        (["holds", "open"], {"partly": False}, "inconclusive"),
        (["holds", "fails"], {}, "contradicted"),
        (["holds", "fails"], {"contrary_decides": False}, "partly reproduced"),
        (["open", "fails"], {"contrary_decides": False}, "contradicted"),
        (["open", "open"], {}, "inconclusive"),
        ([], {}, "not run"),
    ],
)
def test_verdict_of_parts(parts, rule, expected):
    result = verdict(dict(zip("ab", parts, strict=False)), "ours", {}, **rule)
    assert result.verdict == expected


def test_reason_names_the_parts_unless_it_is_given():
    parts = {"a": "open", "b": "fails", "c": "holds", "d": "fails"}
    reason = verdict(parts, "", {}).reason
    assert reason == "It holds for c; the opposite holds for b and d; undecided for a."
    reasons = {"contradicted": "The opposite order holds."}
    assert verdict(parts, "", reasons).reason == reasons["contradicted"]


def test_a_finding_keeps_its_numbers():
    (drawn,) = intervals({"a": Estimate(2, 1, 3, 5)}, "times", least=1, most=4, paper=2.5)
    assert drawn == Interval("a", "times", 2, 1, 3, 1, 4, 2.5, seeds=5)
    assert verdict({"a": "holds"}, "2 [1, 3]", {}, drawn=(drawn,)) == Finding(
        "reproduced", "2 [1, 3]", "It holds for a.", drawn=(drawn,), parts={"a": "holds"}
    )


@pytest.mark.parametrize("infinite", ["value", "low", "high"])
def test_what_has_no_interval_is_not_drawn(infinite):
    numbers = {"value": 2.0, "low": 1.0, "high": 3.0, infinite: np.inf}
    assert intervals({"a": Estimate(**numbers, n=5)}, "times") == ()
