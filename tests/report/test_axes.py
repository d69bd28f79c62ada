import pytest

from fedsampling.evidence.statistics import Estimate
from fedsampling.evidence.verdicts import Claim, Interval, Reading, intervals
from fedsampling.report.formats import axes, settings_plots

GAP = Interval("gap", "dB", 8.0, 7.0, 9.0, least=22.0, most=24.0, paper=23.0)


def test_our_interval_and_the_papers_number_lie_in_their_order_on_one_axis():
    (axis,) = axes([GAP])
    (bar,) = axis.bars
    assert 0 < bar.low < bar.value < bar.high < axis.holds[0] < axis.paper < 100
    assert axis.holds[1] == pytest.approx(bar.high - bar.low, abs=0.02)  # both 2 dB wide
    assert bar.text == "8.00 [7.00, 9.00]"
    assert (
        axis.statement
        == "dashed: the paper's number, 23; grey: the paper's statement holds from 22 to 24"
    )
    ticks = dict(map(reversed, axis.ticks))
    assert bar.high < ticks["10"] < axis.holds[0]


@pytest.mark.parametrize(
    ("bounds", "expected"), [({"least": 0.0}, (6.0, 94.0)), ({"most": 0.0}, (0.0, 6.0))]
)
def test_a_statement_with_one_bound_reaches_the_end_of_the_axis(bounds, expected):
    (axis,) = axes([Interval("gain", "loss", 1.0, 0.5, 2.0, **bounds)])
    assert axis.holds == pytest.approx(expected, abs=1)


def test_intervals_of_the_same_unit_and_statement_share_an_axis():
    loss = Interval("loss", "loss", 0.1, 0.0, 0.2)
    assert [len(axis.bars) for axis in axes([GAP, GAP, loss])] == [2, 1]
    assert axes([]) == ()
    nan = float("nan")
    values = {"one seed": Estimate(1.0, nan, nan, 1), "five": Estimate(1.0, 0.5, 1.5, 5)}
    assert [interval.name for interval in intervals(values, "loss", least=0)] == ["five"]


def test_ratios_over_more_than_a_decade_are_logarithmic():
    (axis,) = axes([Interval("random over best", "times", 10.0, 1.0, 100.0)])
    (bar,) = axis.bars
    assert bar.value == 50.0
    assert axis.ticks == ((pytest.approx(bar.low), "1"), (50.0, "10"), (bar.high, "100"))
    (axis,) = axes([Interval("without width", "times", 1.0, 1.0, 1.0)])
    assert axis.bars[0].value == 50.0


def test_settings_that_the_paper_leaves_open_are_dots_stacked_where_they_coincide():
    def reading(setting, value, verdict="reproduced"):
        interval = Interval("gap", "dB", value, value - 1, value + 1, 22.0, 24.0, 23.0)
        return Reading(setting, verdict, f"{value} dB", (interval,))

    readings = (reading("a", 23.0), reading("b", 23.0), reading("c", 8.0, "contradicted"))
    claim = Claim("c1", "", "", "", "8.0 dB", "", "inconclusive", "", "", readings=readings)
    (plot,) = settings_plots(claim)
    a, b, c = plot.dots
    assert (a.x, a.y - b.y) == (b.x, 11)
    assert c.x < plot.axis.holds[0] < a.x
    assert [(dot.verdict, dot.is_main) for dot in plot.dots] == [
        ("reproduced", False),
        ("reproduced", False),
        ("contradicted", True),
    ]
    assert settings_plots(Claim("c2", "", "", "", "", "", "reproduced", "", "")) == ()
