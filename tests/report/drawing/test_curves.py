"""Learning curves of runs that are smoothed, selected or diverged."""

import numpy as np
import pandas as pd

from fedsampling.evidence.summaries import Summary
from fedsampling.report.drawing.curves import (
    Panel,
    divergences,
    learning_curves,
    learning_grid,
    rolling,
)
from fedsampling.report.drawing.style import Line, legend_below, panels

LINES = {"md": Line("MD", "red"), "other": Line("Other", "blue", variant=True)}


def summary(**runs):
    """One case; `runs` are losses per seed, measured every five rounds, by sampler."""
    parts = [
        pd.DataFrame({"at": 5 * np.arange(len(loss)), "value": loss}).assign(
            case="base", sampler=sampler, seed=seed, metric="loss"
        )
        for sampler, losses in runs.items()
        for seed, loss in enumerate(losses)
    ]
    return Summary(pd.concat(parts, ignore_index=True), {}, {})


def test_rolling_takes_the_rounds_of_the_window_and_at_first_what_there_is():
    longer = [8.0, 4.0, 2.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    smooth = rolling(summary(md=[longer, 9 * [1.0]]), 10).rows
    assert smooth.loc[smooth["seed"] == 0, "value"].tolist() == [8, 6, 3, 4, 3, 0, 0, 0, 0]
    assert smooth.loc[smooth["seed"] == 1, "value"].tolist() == 9 * [1]
    noisy = summary(md=[[8.0, 4.0, 2.0, 6.0, 2.0, 0.0, 0.0, 0.0, 4.0]])  # a quarter at most
    assert rolling(noisy, 500).rows["value"].tolist() == [8, 6, 3, 4, 4, 1, 0, 0, 2]


def test_rolling_takes_a_quarter_of_each_case_of_its_own_length():
    short = summary(md=[[8.0, 4.0, 2.0, 6.0, 2.0, 0.0, 0.0, 0.0, 4.0]]).rows
    long = summary(md=[33 * [1.0]]).rows.assign(case="long")
    smooth = rolling(Summary(pd.concat([short, long]), {}, {}), 50).rows
    assert smooth.loc[smooth["case"] == "base", "value"].tolist() == [8, 6, 3, 4, 4, 1, 0, 0, 2]


def test_rolling_keeps_divergence_and_leaves_out_whole_runs_numbers():
    losses = summary(md=[[8.0, np.nan, np.nan]], other=[[1e300, 1.0, 1.0]])
    diverged = losses.rows[:1].assign(at=-1, metric="diverged_at")
    values = rolling(Summary(pd.concat([losses.rows, diverged]), {}, {}), 5).rows["value"]
    np.testing.assert_array_equal(values, [8, np.nan, np.nan, 1e300, 1, 1])


def axes_with(curves):
    with panels(1, 1) as (_, (axes,)):
        learning_curves(axes, curves, LINES, "loss")
    return axes


def test_a_curve_ends_in_a_cross_where_a_run_diverged():
    curves = summary(md=[[3.0, 2.0, np.nan, np.nan], [3.0, 4.0, 1.0, 1.0]]).curves
    axes = axes_with(curves)
    curve, cross = axes.lines
    assert axes.get_legend_handles_labels()[1] == ["MD"]
    np.testing.assert_array_equal(curve.get_ydata(), [3, 3, np.nan, np.nan])
    assert (cross.get_xdata()[0], cross.get_ydata()[0]) == (5, 3)


def test_three_seeds_have_a_band_from_smallest_to_largest():
    losses = [[3.0, 2.0, 9.0, 2.0], [3.0, 2.0, 1.0, 1.0], [3.0, 2.0, 1.0, 0.5]]
    axes = axes_with(summary(md=losses).curves)
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.5, 9)
    bottom, top = axes.get_ylim()
    assert bottom <= 0.5 < 9 <= top
    legend_below(axes.figure, [axes])
    entries = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert entries == ["MD", "smallest to largest seed"]


def test_panels_with_the_same_axis_show_the_curves_of_all():
    high, low = (summary(md=4 * [values]).curves for values in ([9.0, 8, 8, 8], [2.0, 1, 1, 1]))
    grid = [Panel(high, LINES), Panel(low, LINES)]
    _, (axes, _) = learning_grid(grid, 2, width=6, height=3, sharey=True)
    bottom, top = axes.get_ylim()
    assert bottom <= 1 < 9 <= top


def test_few_rounds_are_joined_points_with_intervals():
    curves = summary(md=[[3.0, 1.0], [3.0, 2.0], [3.0, 3.0]]).curves
    axes = axes_with(curves)
    (points,) = axes.lines
    assert (points.get_linestyle(), points.get_marker()) == ("-", "o")
    ends = [segment[:, 1] for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(ends, curves[["low", "high"]])


def test_divergences_are_listed_by_sampler_and_case():
    columns = ["case", "sampler", "seed", "value"]
    rows = [("base", "md", 0, -1.0), ("base", "md", 1, 7.0), ("base", "other", 0, -1.0)]
    rows = pd.DataFrame([*rows, ("mu-1", "md", 0, 3.0)], columns=columns)
    assert divergences(Summary(rows.assign(at=-1, metric="diverged_at"), {}, {}), LINES) == (
        "MD: 1 of 2 runs diverged, the first in round 7; its mean ends there.",
        "MD (mu-1): 1 of 1 runs diverged, the first in round 3; its mean ends there.",
    )


def test_a_case_without_curves_says_so():
    runs = summary(md=[[3.0, 2.0], [3.0, 1.0]]).curves.assign(case="other")
    _, (axes,) = learning_grid([Panel(runs, LINES)], 1, width=3, height=3)
    assert [text.get_text() for text in axes.texts] == ["not run at this scale"]


def test_a_difference_shows_zero_and_its_whole_band():
    curves = summary(md=4 * [[5.0, 4.9, 4.8, 4.7, 4.6]]).curves
    curves = curves.assign(low=curves["mean"] - 30, high=curves["mean"] + 30)
    cut, full = (
        learning_grid([Panel(curves, LINES, zero=zero)], 1, width=3, height=3)[1][0].get_ylim()
        for zero in (False, True)
    )
    assert cut[1] - cut[0] < 10  # the band of four seeds, their interval, does not set the scale
    assert full[0] < -25 < 34 < full[1]
