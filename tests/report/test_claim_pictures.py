"""Pictures of claims: intervals next to the paper's statement, fresh seeds, bounds, settings."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fedsampling.evidence.claims import Claim
from fedsampling.evidence.verdicts import Interval, Reading
from fedsampling.report.claim_axes import axes, settings_plots
from fedsampling.report.claim_bars import show_rounded
from fedsampling.report.claim_strips import row_number, strips


def claim(*drawn, id="c1"):
    return Claim(id, "", "", "", "", "", "inconclusive", "", "", drawn=drawn)


GAP = Interval("gap", "dB", 8.0, 7.0, 9.0, least=22.0, most=24.0, paper=23.0)


def test_our_interval_and_the_papers_number_lie_in_their_order_on_one_axis():
    bounds = {"most": 0.0}, {"least": 0.0}
    losses = [Interval("loss", "loss", 1.0, 0.5, 2.0, **bound) for bound in bounds]
    axis, below, above = axes(claim(GAP, replace(GAP, name="half"), *losses))
    assert (below.holds[0], sum(above.holds)) == (0, 100)  # to the ends of the axis
    bar, _ = axis.bars
    assert 0 < bar.low < bar.value < bar.high < axis.holds[0] < axis.paper < 100
    assert axis.holds[1] == pytest.approx(bar.high - bar.low, abs=0.02)  # both 2 dB wide
    assert bar.text == "8.00 [7.00, 9.00]"
    dashed, grey = axis.statement.split("; ")
    assert (dashed[-2:], grey[-8:]) == ("23", "22 to 24")
    ticks = dict(map(reversed, axis.ticks))
    assert bar.high < ticks["10"] < axis.holds[0]


def test_ratios_over_more_than_a_decade_are_logarithmic():
    (axis,) = axes(claim(Interval("random over best", "times", 10.0, 1.0, 100.0)))
    (bar,) = axis.bars
    assert bar.value == 50.0
    assert axis.ticks == ((pytest.approx(bar.low), "1"), (50.0, "10"), (bar.high, "100"))
    (axis,) = axes(claim(Interval("without width", "times", 1.0, 1.0, 1.0)))
    assert axis.bars[0].value == 50.0


def test_settings_left_open_are_rows_in_order_of_value():
    def reading(setting, value, verdict="reproduced"):
        interval = Interval("gap", "dB", value, value - 1, value + 1, 22.0, 24.0, 23.0)
        return Reading(setting, verdict, f"{value} dB", (interval,))

    readings = (reading("a", 23.0), reading("b", 23.0), reading("c", 8.0, "contradicted"))
    judged = replace(claim(), ours="8.0 dB", readings=readings)
    (plot,) = settings_plots(judged)
    c, a, b = plot.dots
    assert [dot.setting for dot in plot.dots] == ["c", "a", "b"]
    assert c.low < c.x < c.high < plot.axis.holds[0] < a.x == b.x
    assert 0 < c.y < a.y < b.y < plot.height
    assert [dot.is_main for dot in plot.dots] == [True, False, False]
    assert settings_plots(claim()) == ()


def test_a_number_that_was_cut_off_is_a_bound_without_an_interval():
    lead = Interval("DivFL", "times FLANP's seconds", 7.5, 7.0, 8.0, least=1.0, bound=">")
    over = replace(lead, unit="times, random's seconds over", bound="<")
    (axis, other) = axes(claim(lead, over))
    (bar,), (upper,) = axis.bars, other.bars
    assert (bar.text, bar.low, bar.high) == ("> 7.50, cut off", bar.value, 100)
    assert (upper.text, upper.low, upper.high) == ("< 7.50, cut off", 0, upper.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1834, "1,834"), (12345, "12,345"), (-0.25, "−0.25"), (0.5, "0.5"), (2e9, "2e+09")],
)
def test_a_printed_number_is_the_same_in_a_row_and_on_its_axis(value, text):
    printed = replace(GAP, paper=value, least=None, most=None)
    assert show_rounded(value) == text
    assert axes(claim(printed))[0].statement.endswith(f"number, {text}")
    if value > 0:
        (bar,) = strips([claim(printed)]).of["c1"].bars
        assert bar.text.endswith(f", paper {text}")


class TestStrips:
    def test_all_claims_share_a_logarithmic_scale_of_ours_over_the_papers(self):
        half = replace(GAP, value=11.5, low=10.0, high=12.0)
        double = Interval("lead", "times", 6.0, 5.0, 9.0, least=3.0)
        scale = strips([claim(half, id="c1"), claim(double, id="c2"), claim(id="c3")])
        assert scale.of.keys() == {"c1", "c2"}
        (first,), (second,) = scale.of["c1"].bars, scale.of["c2"].bars
        assert second.value - scale.unity == pytest.approx(scale.unity - first.value, abs=0.02)
        assert first.text == "11.5 [10.0, 12.0], paper 23"
        assert second.text == "6.00 [5.00, 9.00], rule: >\N{NO-BREAK SPACE}3"
        assert scale.of["c2"].holds[0] == scale.unity
        assert strips([claim()]) is None

    def test_fresh_seeds_follow_the_exploring_runs(self):
        fresh = SimpleNamespace(drawn=(replace(GAP, value=20.0),))
        judged = replace(claim(GAP), confirmation=fresh)
        bars = strips([judged]).of["c1"].bars
        assert [bar.is_fresh for bar in bars] == [False, True]
        (axis,) = axes(judged)
        assert [bar.name for bar in axis.bars] == ["gap", "◆ gap"]

    def test_fresh_seeds_are_shown_if_another_sampler_is_fastest_with_them(self):
        fresh = SimpleNamespace(drawn=(replace(GAP, name="another gap", value=20.0),))
        bars = strips([replace(claim(GAP), confirmation=fresh)]).of["c1"].bars
        assert [(bar.text[:4], bar.is_fresh) for bar in bars] == [("8.00", False), ("20.0", True)]

    def test_a_row_in_words_shows_fresh_seeds_if_they_confirm_the_claim(self):
        explored = Interval("order", "loss (Holm-corrected)", 0.02, -0.04, 0.08, least=0.0)
        drawn = (replace(explored, value=0.05, low=0.01, high=0.1),)
        judged = {
            answered: replace(
                claim(explored), confirmation=SimpleNamespace(drawn=drawn, answered=answered)
            )
            for answered in (False, True)
        }
        assert row_number(judged[False]) == "0.0200 [−0.0400, 0.0800] loss"
        assert row_number(judged[True]) == "0.0500 [0.0100, 0.100] loss"
