"""Formats: formulas, cells of tables, printed numbers, and the axes of claims' intervals."""

from dataclasses import replace

import pytest

from fedsampling.evidence.verdicts import Claim, Interval, Reading
from fedsampling.experiments.papers import Reported
from fedsampling.report.formats import axes, printed_numbers, settings_plots, typeset, typeset_html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Var[ω_i] ≤ Σ_MD, p_i²", "Var[ω<sub>i</sub>] ≤ Σ<sub>MD</sub>, p<sub>i</sub>²"),
        ("η̃_i^{t+1}, θ^*", "η̃<sub>i</sub><sup>t+1</sup>, θ<sup>*</sup>"),
        ("E_{ξ_i}[g]", "E<sub>ξ<sub>i</sub></sub>[g]"),
        ("(1 − p_i)^m, 2^-5", "(1 − p<sub>i</sub>)<sup>m</sup>, 2<sup>-5</sup>"),
        ("see `x_i`, p_{<b>}", "see <code>x_i</code>, p<sub>&lt;b&gt;</sub>"),
        *((text, text) for text in ("peak_mb", "figure2_best", "x_train_set", "a _b")),
    ],
)
def test_scripts_of_symbols_are_set_but_words_and_code_stay(text, html):
    assert typeset(text) == html
    assert typeset_html('<td class="p_i">p_i</td>') == '<td class="p_i">p<sub>i</sub></td>'


def test_numbers_of_an_artefact_come_with_ours_where_a_claim_compares_them():
    reports = [
        Reported(artefact=figure, claim=claim, quantity=quantity, value=value, unit="dB", where="V")
        for figure, claim, quantity, value in (
            ("figure1", "", "clients", "100"),
            ("figure1", "c1", "gap", "23.1"),
            ("figure2", "", "other", "1"),
            ("figure1", "c9", "not judged", "2"),
        )
    ]
    drawn = (
        Interval("gap", "dB", 8.6, 8.5, 8.8, paper=23.1),
        Interval("other", "dB", 1.0, 0.0, 2.0, paper=5.0),
    )
    claim = Claim("c1", "", "figure1", "", "", "", "partly reproduced", "", "", drawn=drawn)
    numbers = printed_numbers("figure1", reports, [claim])
    assert [(number.row.quantity, number.claim, number.ours) for number in numbers] == [
        ("gap", "c1", "8.60 [8.50, 8.80]"),
        ("clients", "", ""),
        ("not judged", "", ""),
    ]


GAP = Interval("gap", "dB", 8.0, 7.0, 9.0, least=22.0, most=24.0, paper=23.0)


def test_our_interval_and_the_papers_number_lie_in_their_order_on_one_axis():
    bounds = {"most": 0.0}, {"least": 0.0}
    losses = [Interval("loss", "loss", 1.0, 0.5, 2.0, **bound) for bound in bounds]
    axis, below, above = axes([GAP, replace(GAP, name="half"), *losses])
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
    assert [dot.verdict for dot in plot.dots] == ["reproduced", "reproduced", "contradicted"]
    assert [dot.is_main for dot in plot.dots] == [False, False, True]
    assert settings_plots(Claim("c2", "", "", "", "", "", "reproduced", "", "")) == ()
