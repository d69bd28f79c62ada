"""Comparisons, plots and tables of the library: numbers by hand, and files that LaTeX can read."""

import numpy as np
import pandas as pd
import pytest
from tests.shared import line_of

import fedsampling as fs
from fedsampling.evidence.ranking import ranking
from fedsampling.evidence.scores import curve, last_values


def history(final, metric="accuracy"):
    """Two rounds of some seeds; 10 bits in the first round, 20 and 2 in the second."""
    rows = []
    for seed, value in enumerate(final):
        rows += [(seed, 0, metric, 0.0), (seed, 2, metric, value)]
        rows += [(seed, -1, "diverged_at", 2 if np.isnan(value) else -1)]
        rows += [(seed, 1, "model_bits", 10.0), (seed, 2, "model_bits", 20.0)]
        rows += [(seed, 2, "norm_bits", 2.0 + seed)]
    return pd.DataFrame(rows, columns=["seed", "at", "metric", "value"])


NOISE = np.array([0.0, 0.01, -0.01, 0.02, -0.02])
HISTORIES = {
    "a": history([*(0.5 + NOISE)]),
    "b": history([*(0.8 + NOISE[::-1])]),
    "c": history([*(0.501 - NOISE)]),
}
A = HISTORIES["a"]


def test_intervals_end_at_the_bounds_of_the_metric():
    rare = history([1.0, 1.0, 0.9])
    assert fs.compare({"a": rare})["high"].tolist() == [1.0]
    assert curve(rare, "rounds", "accuracy")["high"].iloc[-1] == 1.0


def test_samplers_are_ranked_with_what_is_significant():
    table = fs.compare(HISTORIES)
    assert table["sampler"].tolist() == ["b", "c", "a"]
    assert table["rank"].tolist() == [1, 2, 3]
    assert table[["rank_low", "rank_high"]].to_numpy().tolist() == [[1, 1], [2, 3], [2, 3]]
    assert table["significance"].tolist() == ["better", "no", "no"]
    np.testing.assert_allclose(table["difference"], [0.3, 0.001, np.nan])
    half = 2.776445105 * NOISE.std(ddof=1) / np.sqrt(5)  # Student's t of 4 degrees of freedom
    np.testing.assert_allclose(table["high"] - table["value"], half, rtol=1e-6)


def test_significance_and_ranks_are_corrected_for_several_comparisons():
    histories = {
        "a": history([0.5] * 5),
        "b": history([*(0.522 + NOISE)]),
        "c": history([*(0.501 - NOISE)]),
    }
    table = fs.compare(histories).set_index("sampler")
    assert table.loc["b", "significance"] == "no"
    assert table.loc["b", ["rank_low", "rank_high"]].tolist() == [1, 3]
    alone = fs.compare({label: histories[label] for label in "ab"}).set_index("sampler")
    assert alone.loc["b", "significance"] == "better"


def test_losses_are_better_when_small():
    histories = {"big": history([2.0, 2.1, 2.3], "loss"), "small": history([1.0, 1.1, 1.2], "loss")}
    table = fs.compare(histories, metric="loss", reference="big")
    assert table["sampler"].tolist() == ["small", "big"]
    assert table["significance"].tolist() == ["better", "no"]
    assert fs.compare(histories, metric="loss", larger=True)["sampler"].tolist()[0] == "big"


class TestDivergence:
    """A sampler whose runs diverge is last, with the reason, and changes nothing for the others."""

    @pytest.fixture(params=[[np.nan] * 5, [0.9, 0.9, np.nan, 0.9, 0.9]], ids=["all", "one"])
    def lost(self, request):
        return history(request.param)

    def test_it_is_ranked_last_with_the_reason_and_moves_no_interval(self, lost):
        table = fs.compare({"lost": lost} | HISTORIES, reference="a").set_index("sampler")
        expected = fs.compare(HISTORIES).set_index("sampler").assign(diverged=0)
        pd.testing.assert_frame_equal(table.drop("lost"), expected)
        row = table.loc["lost"]
        assert row["diverged"] == (lost["metric"].eq("diverged_at") & lost["value"].ge(0)).sum() > 0
        assert row[["rank", "rank_low", "rank_high"]].tolist() == [4, 4, 4]
        assert row["significance"] == "diverged"
        assert row[["value", "low", "high", "difference"]].isna().all()

    def test_nothing_is_compared_with_a_reference_that_diverged(self, lost):
        table = fs.compare({"lost": lost} | HISTORIES).set_index("sampler")
        assert (table.drop("lost")["significance"] == "reference diverged").all()
        assert table["difference"].isna().all()

    def test_latex_says_how_many_runs_diverged(self, lost):
        lines = fs.to_latex(fs.compare({"lost": lost} | HISTORIES, reference="a")).splitlines()
        (row,) = [line for line in lines if line.startswith("lost &")]
        count = fs.compare({"lost": lost})["diverged"].item()
        assert row == rf"lost & -- & {count} of 5 & 4 [4--4] & diverged \\"

    def test_the_curve_ends_in_a_cross_that_the_legend_explains(self, lost):
        axes = fs.plot({"a": HISTORIES["a"], "lost": lost})
        (cross,) = [line for line in axes.lines if line.get_marker() == "X"]
        assert cross.get_xydata().tolist() == [[0, 0]]  # the last round that was measured
        count = fs.compare({"lost": lost})["diverged"].item()
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels == ["a", f"lost ({count} of 5 runs diverged)"]


def test_an_infinite_value_is_no_rank_either():
    table = fs.compare(HISTORIES | {"c": history([np.inf] + [0.9] * 4)}).set_index("sampler")
    assert table.loc["c", ["diverged", "rank", "significance"]].tolist() == [0, 3, "not finite"]


def test_a_last_value_that_is_missing_is_not_replaced_by_an_earlier_one():
    assert last_values(history([np.nan, 0.5]), "accuracy").isna().tolist() == [True, False]


def test_costs_are_summed_over_rounds_and_kinds():
    drawn = curve(history([0.5, 0.7]), "bits", "accuracy")
    np.testing.assert_allclose(drawn["x"], [0, 10 + 20 + 2.5])
    np.testing.assert_allclose(drawn["mean"], [0, 0.6])


def test_plots_have_a_line_for_each_history():
    import matplotlib as mpl

    mpl.use("agg")
    axes = fs.plot(HISTORIES, x="bits")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b", "c"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("bits sent by clients", "accuracy")
    extended = fs.plot(HISTORIES["a"], axes=axes)
    assert extended is axes


def test_labels_of_a_plot_are_text_and_no_formulas(tmp_path):
    label = r"$\undefined{$ costs 5 $"
    axes = fs.plot({label: HISTORIES["a"], "_mine": HISTORIES["a"]})
    axes.figure.savefig(tmp_path / "a.png")  # which would fail on the formula
    texts = [text.get_text().lstrip("\u200b") for text in axes.get_legend().get_texts()]
    assert texts == [label.replace("$", r"\$"), "_mine"]


def test_latex_has_rules_a_bold_best_caption_and_label():
    table = fs.compare({"my_sampler": HISTORIES["a"], "b": HISTORIES["b"]})
    lines = fs.to_latex(table, caption="Accuracy.", label="tab:mine").splitlines()
    caption = {r"\caption{Accuracy.}", r"\label{tab:mine}"}
    assert {r"\toprule", r"\bottomrule", *caption} <= {*lines}
    (best,) = [line for line in lines if line.startswith("b &")]
    assert best.startswith(r"b & \textbf{0.800} [")
    assert "$^*$" in best
    assert any(line.startswith(r"my\_sampler & 0.500 [") for line in lines)
    plain = pd.DataFrame({"x": ["a_1", "b"], "y": [1.5, 2.5]})
    assert r"a\_1 & 1.50 \\" in fs.to_latex(plain).splitlines()


def test_all_samplers_and_datasets_are_listed():
    samplers, datasets = fs.samplers().set_index("name"), fs.datasets().set_index("name")
    assert samplers.loc["md", "settings"] == "m, duplicates='independently'"
    assert samplers.loc["power_of_choice", "needs"] == "losses"
    assert {"mnist", "files"} <= {*datasets.index}


def test_compare_trains_each_sampler_on_the_same_seeds():
    data = fs.load("mnist", "by_digit", data="embedded")
    work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
    table = fs.compare([fs.scheme("md", m=4), fs.scheme("md", m=8)], data, seeds=3, **work)
    histories = {f"md m={m}": fs.train(data, fs.scheme("md", m=m), seeds=3, **work) for m in (4, 8)}
    pd.testing.assert_frame_equal(table, ranking(histories, "accuracy", "md m=4"))


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: fs.compare({}), "samplers: empty; pass at least one"),
        (lambda: fs.compare(A), "samplers: is one history; pass several as a dict"),
        (lambda: fs.compare("md"), "samplers: 'md' is invalid; must be a list or a dict"),
        (
            lambda: fs.compare({"md", "uniform"}),
            "samplers: a set has no order; pass a list or a di",
        ),
        (lambda: fs.left_out({"a": 3}), "history 'a': must be a result of fedsampling.train"),
        (lambda: fs.compare({"a": A.astype({"value": str})}), "history 'a': must be a result of"),
        (lambda: fs.compare({"a": pd.concat([A, A])}), "history 'a': duplicate rows; pass one"),
        (lambda: fs.compare(HISTORIES, metric=1), "metric: 1 is invalid; must be a name"),
        (lambda: fs.to_latex(HISTORIES), "table: dict is invalid; must be a DataFrame"),
        (lambda: fs.compare([fs.scheme("md", m=4)]), "data: missing; pass a dataset, such as"),
        (lambda: fs.compare(HISTORIES, metric="accuracies"), "metric: the history has no 'accurac"),
        (lambda: fs.compare(HISTORIES | {"d": history([1.0])}), "d: its seeds differ from a's; "),
        (lambda: fs.compare(HISTORIES, reference="x"), "reference: 'x' is unknown; known: a, b, c"),
        (lambda: fs.plot(HISTORIES, x="seconds"), "x: the history has no seconds; train with del"),
    ],
)
def test_mistakes_get_one_line(call, line):
    assert line_of(call).startswith(line)


def test_lines_are_drawn_into_axes_of_any_style_and_differ():
    import matplotlib.pyplot as plt

    with plt.style.context("default"):  # whose colours are tuples
        axes = plt.figure().subplots()
        assert fs.plot(HISTORIES, axes=axes) is axes
    curves = fs.plot({f"sampler {k}": HISTORIES["a"] for k in range(50)}).lines
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in curves}
    assert len(looks) == 50


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("50 % of x_test & #1", r"50 \% of x\_test \& \#1"),
        (
            r"50\% of $p_i$ in \ref{my_table}, \emph{a_b}",
            r"50\% of $p_i$ in \ref{my_table}, \emph{a\_b}",
        ),
        (r"$50%$ \\ _", r"$50\%$ \\ \_"),
    ],
)
def test_captions_are_text_unless_they_are_commands(caption, expected):
    assert rf"\caption{{{expected}}}" in fs.to_latex(pd.DataFrame({"a": [1]}), caption=caption)


def test_no_cell_or_header_is_an_option_of_the_line_before():
    rows = fs.to_latex(pd.DataFrame({"[a]": ["[b]", "*", "c"], "d": [1, 2, 3]})).splitlines()
    assert [row[:4] for row in rows[2:7]] == ["{}[a", r"\mid", "{}[b", "{}* ", "c & "]


PLAIN = pd.DataFrame({"a": [1.0]})
WRONG_TABLES = {
    "empty": (PLAIN[:0], {}, "table: no cells in 0 rows; must have rows and columns"),
    "no columns": (PLAIN[[]], {}, "table: no cells in 1 rows"),
    "duplicate": (pd.concat([PLAIN, PLAIN], axis=1), {}, "table: duplicate column 'a'; rename"),
    "same text": (pd.DataFrame({1: [1], "1": [2]}), {}, "table: duplicate column '1'; rename"),
    "no digits": (PLAIN, {"digits": 0}, "digits: 0 is invalid; must be an integer above 0"),
    "text": (PLAIN, {"digits": "3"}, "digits: '3' is invalid"),
    "caption": (PLAIN, {"caption": 3}, "caption: 3 is invalid; must be text"),
}


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_tables_that_latex_cannot_show_are_refused(name):
    table, options, line = WRONG_TABLES[name]
    assert line_of(lambda: fs.to_latex(table, **options)).startswith(line)


def test_axes_of_another_kind_are_refused():
    assert line_of(lambda: fs.plot(HISTORIES, axes="x")).startswith("axes: 'x' is invalid; must be")
