"""fs.tune and fs.compare(tune=…): the same trials for each sampler, on a holdout."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.shared import line_of

import fedsampling as fs
from fedsampling.base.streams import stream
from fedsampling.data.federated import hold_out

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
OWNER = RNG.integers(0, 8, 400)
DATA = fs.federated(X, np.where(X[:, 0] > 0, "a", "b"), clients=OWNER, test_share=0.2)
WORK = {"model": "softmax", "steps": 2, "batch": 5, "rounds": 6}
SAMPLERS = [fs.scheme("md", m=3), fs.scheme("uniform", m=3)]
GRID = {"step": [0.1, 1e-6, 1e-4], "momentum": [0.0, 0.5]}


@pytest.fixture(scope="module")
def trials():
    with pytest.warns(UserWarning, match=r"edge of the grid: md \(step.*; extend it"):
        return fs.tune(SAMPLERS, DATA, GRID, metric="loss", **WORK)


def test_each_sampler_gets_every_combination_and_the_best_wins(trials):
    assert trials.groupby("sampler").size().tolist() == [6, 6]
    for _, rows in trials.groupby("sampler"):
        assert rows[["step", "momentum"]].drop_duplicates().shape == (6, 2)
        assert rows["chosen"].sum() == 1
        best = rows[rows["chosen"]].iloc[0]
        assert best["score"] == rows["score"].min()
        assert (best["step"], best["at_edge"].split(", ")[0]) == (0.1, "step")
        assert set(rows.loc[~rows["chosen"], "at_edge"]) == {""}


def test_scores_are_the_second_half_of_the_rounds_on_the_holdout(trials):
    part = hold_out(DATA, 0.2, stream(0, "holdout"), keep_owner=True)
    assert len(part.x) + len(part.x_test) == len(DATA.x)
    history = fs.train(part, SAMPLERS[0], step=1e-4, momentum=0.5, seeds=2, **WORK)
    late = history[(history["metric"] == "loss") & (history["at"] >= 3)]
    row = trials[(trials["sampler"] == "md") & (trials["step"] == 1e-4)].iloc[1]
    assert row["score"] == pytest.approx(late["value"].mean())


@pytest.mark.filterwarnings("ignore:.*edge of the grid")
def test_the_test_set_is_not_used():
    wrong = replace(DATA, x_test=1e3 * DATA.x_test[::-1], y_test=1 - DATA.y_test)
    tables = [fs.tune(SAMPLERS, data, {"step": [0.01, 0.1, 9.0]}, **WORK) for data in (DATA, wrong)]
    pd.testing.assert_frame_equal(*tables)


def test_a_diverged_trial_is_not_chosen():
    linear = replace(DATA, y=DATA.y.astype(float), y_test=DATA.y_test.astype(float), classes=None)
    work = {**WORK, "model": "linear", "rounds": 60}
    table = fs.tune(SAMPLERS[:1], linear, {"step": [0.01, 0.1, 1e5]}, metric="loss", **work)
    assert np.isnan(table["score"].iloc[-1])
    assert not table["chosen"].iloc[-1]


def test_none_is_a_value_of_a_grid_like_others():
    table = fs.tune(SAMPLERS[:1], DATA, {"clip": [1.0, None]}, step=0.1, **WORK)
    assert {*table["clip"]} == {1.0, None}


@pytest.mark.filterwarnings("ignore:.*edge of the grid")
def test_a_trial_with_fewer_rounds_is_scored_over_its_own_second_half():
    table = fs.tune(SAMPLERS[:1], DATA, {"rounds": [2, 6]}, step=0.1, **{**WORK, "rounds": 4})
    assert table["score"].notna().all()


@pytest.mark.filterwarnings("ignore:.*edge of the grid")
def test_a_grid_may_mix_numbers_and_lists():
    grid = {"failures": [0.1, [0.1] * 8], "clip": [2, 1.5, 1]}
    table = fs.tune(SAMPLERS[:1], DATA, grid, step=0.1, **WORK)
    assert [*table["clip"]] == [2, 1.5, 1] * 2


@pytest.mark.filterwarnings("ignore:.*edge of the grid")
def test_until_ends_only_the_final_runs():
    until = {"target": 0.1, "in_a_row": 1}  # met at once
    grid = {"step": [0.01, 0.1]}
    table = fs.compare(SAMPLERS, DATA, tune=grid, until=until, **WORK)
    expected = fs.compare(SAMPLERS, DATA, tune=grid, **WORK)
    steps = [frame.set_index("sampler")["step"].to_dict() for frame in (table, expected)]
    assert steps[0] == steps[1]
    with pytest.raises(fs.InputError, match=r"^until: trials are scored over all their rounds"):
        fs.tune(SAMPLERS, DATA, grid, until=until, **WORK)
    with pytest.raises(fs.InputError, match=r"^grid\.until: trials are scored over all"):
        fs.tune(SAMPLERS, DATA, {"until": [until]}, step=0.1, **WORK)


def test_compare_trains_with_the_chosen_values_and_says_so():
    grid = {"step": [1e-6, 0.1, 1e4], "server": [None, "fedavgm"]}
    table = fs.compare(SAMPLERS, DATA, metric="loss", tune=grid, seeds=2, **WORK)
    assert table["step"].tolist() == [0.1, 0.1]
    assert set(table["at_edge"]) == {""}
    for row in table.to_dict("records"):
        history = fs.train(
            DATA, fs.scheme(row["sampler"], m=3), step=0.1, server=row["server"], seeds=2, **WORK
        )
        last = history[(history["metric"] == "loss") & (history["at"] == 6)]
        assert row["value"] == pytest.approx(last["value"].mean())
    assert "& step & server \\\\" in fs.to_latex(table)
    table["at_edge"] = "step"
    assert "& step & server & edge of the grid \\\\" in fs.to_latex(table)


@pytest.mark.parametrize(
    ("grid", "line"),
    [
        ([0.1, 0.2], "grid: must be a dict of lists, such as"),
        ({"step": 0.1}, "grid.step: 0.1 is invalid; must be a list of values"),
        ({"step": []}, "grid.step: an object of list is invalid; must be"),
        ({1: [0.1]}, "grid: must be a dict of lists, such as"),
        ({"lr": [0.1]}, "lr: unknown key; did you mean 'step'"),
    ],
)
def test_wrong_grids_are_one_line(grid, line):
    with pytest.raises(fs.InputError, match=line):
        fs.compare(SAMPLERS, DATA, tune=grid, **WORK)
    with pytest.raises(fs.InputError, match="holdout"):
        fs.tune(SAMPLERS, DATA, {"step": [0.1]}, holdout=2, **WORK)


@pytest.fixture
def needs_all():
    """A sampler that needs all clients; no ``"*"`` of another test expands to it."""

    class NeedsAll(fs.Sampler, name="needs_all"):
        m: int
        unbiased = False

        def select(self, view, rng):
            return rng.choice(view.n, self.m)

    yield NeedsAll(m=3)
    NeedsAll.named = ""


@pytest.mark.parametrize("grid", [None, {"step": [0.1, 0.2]}])
def test_all_samplers_are_checked_before_the_first_one_trains(grid, needs_all):
    samplers = [*SAMPLERS, needs_all]
    work = {"step": 0.1, **WORK, "availability": np.ones((6, 8)), "on_round": pytest.fail}
    with pytest.raises(fs.InputError, match=r"^needs_all: .*set intermittent = True"):
        fs.compare(samplers, DATA, tune=grid, **work)


UNTESTED = replace(DATA, x_test=DATA.x_test[:0], y_test=DATA.y_test[:0], start_test=None)


@pytest.mark.parametrize(
    ("metric", "data", "line"),
    [
        ("accuracy", UNTESTED, "metric: the data have no test samples for 'accuracy'; make some"),
        ("test_loss", DATA, "metric: 'test_loss' is not measured where y are labels; use 'accur"),
        ("worst_accuracy", DATA, "metric: 'worst_accuracy' is a measure of clients; add by_client"),
        ("seconds", DATA, "metric: 'seconds' needs delays; add them, such as 'synthetic'"),
    ],
)
def test_a_metric_that_is_not_measured_is_refused_before_training(metric, data, line):
    work = {"step": 0.1, **WORK, "on_round": pytest.fail}
    assert line_of(lambda: fs.compare(SAMPLERS, data, metric=metric, **work)).startswith(line)
    if data is DATA:  # tune measures on its holdout
        call = lambda: fs.tune(SAMPLERS, data, {"clip": [1, 2]}, metric=metric, **work)  # noqa: E731
        assert line_of(call).startswith(line)


def test_a_missing_metric_stops_after_the_first_sampler():
    rounds = []
    work = {"step": 0.1, **WORK, "training_loss": False, "on_round": rounds.append}
    with pytest.raises(fs.InputError, match=r"^metric: the history has no 'loss'"):
        fs.compare(SAMPLERS, DATA, metric="loss", **work)
    assert len(rounds) == WORK["rounds"] + 1
