"""The server loop: reproducible, independent of stacking, right on average, exact costs."""

import numpy as np
import pytest

import fedsampling as fs
from fedsampling.base.errors import InputError
from fedsampling.learning.training.history import JobHistory
from fedsampling.learning.training.loop import measuring, train
from fedsampling.learning.training.until import Until
from fedsampling.runs.rows import digest


def test_a_seeds_table_does_not_depend_on_the_other_seeds(problem, variant):
    digests = problem.digests(variant, list(range(100)))
    for seeds in ([7], [7, 3], [99, 7, 0], [3, 1, 4, 15, 9, 2, 6]):
        of_subset = problem.digests(variant, seeds)
        assert of_subset == {seed: digests[seed] for seed in seeds}
    assert len(set(digests.values())) == 100


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_values_of_a_diverged_run_are_nan_and_the_others_continue(linear):
    problem = linear()
    agent2 = slice(problem.data.start[2], problem.data.start[3])
    problem.data.x.flags.writeable = True
    problem.data.x[agent2] = 1e200  # a run diverges with it
    seeds, rounds = list(range(12)), 4
    tables = problem.train("fedavg", seeds, rounds, m=1)
    mixed, lost = problem.iterates[-1], {}
    for seed, table in zip(seeds, tables, strict=True):
        at = int(table.loc[table.metric == "diverged_at", "value"].item())
        square = table[table.metric == "square"].set_index("at").value
        end = rounds + 1 if at < 0 else at
        assert square[square.index < end].notna().all()
        assert square[square.index >= end].isna().all()
        lost[seed] = at
    assert len(set(lost.values())) > 2  # at different times, and some never
    assert -1 in lost.values()
    survivors = [seed for seed in seeds if lost[seed] < 0]
    problem.train("fedavg", survivors, rounds, m=1)
    np.testing.assert_array_equal(mixed[survivors], problem.iterates[-1])


@pytest.mark.parametrize(
    ("variant", "numbers", "gradients", "all_data"),
    [
        # Three agents report 3 numbers each, after 2 epochs of 4 samples.
        *((variant, 3 * 3, 3 * 2 * 4, 0) for variant in ("fedavg", "md", "optimal")),
        # They add their scores, and meet the second batch also at the round's first model.
        ("tracked", 3 * 3 + 3, 3 * 3 * 4, 0),
        # All seven agents send a score, which takes all their data.
        ("approximate", 3 * 3 + 7, 3 * 2 * 4, 1),
    ],
)
def test_costs_are_those_counted_by_hand(linear, variant, numbers, gradients, all_data):
    problem = linear(E=np.full(7, 2), B=np.full(7, 4))
    for table in problem.train(variant, [0, 1], 5):
        cost = table[table["at"] == -1].set_index("metric").value
        assert cost["uplink_bits_per_round"] == pytest.approx(32 * numbers)
        expected = gradients + all_data * problem.data.n_samples.sum()
        assert cost["gradients_per_round"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("until", "ends"),
    [
        (Until(target=0.9, in_a_row=1), [1, 0]),
        (Until(target=0.9, in_a_row=2), [2, 3]),
        (Until(target=0.95), [-1, -1]),
        (Until(seconds=25.0), [3, -1]),
        (Until(seconds=2.0, rounds=3), [3, 3]),
        (Until(target=0.9, in_a_row=2, seconds=15.0), [2, 3]),
        (Until(metric="test_loss", target=0.11, in_a_row=2), [2, 3]),
    ],
)
def test_a_run_ends_at_its_target_or_by_its_clock(until, ends):
    history = JobHistory.empty(runs=2)
    accuracies = np.array([(0.1, 0.9), (0.9, 0.2), *3 * [(0.9, 0.9)]])
    for t, accuracy in enumerate(accuracies):
        history.measure(t, {"accuracy": accuracy, "test_loss": 1 - accuracy})
    for t in range(1, 5):
        history.charge(t, {"seconds": np.array([10.0, 1.0])})
    assert until.ended_at(history).tolist() == ends


def test_the_clock_ends_runs_whatever_they_measure():
    history = JobHistory.empty(runs=1)
    for t in range(4):
        history.measure(t, {"test_loss": np.ones(1)})
        history.charge(t + 1, {"seconds": np.array([10.0])})
    assert Until(seconds=25.0).ended_at(history).tolist() == [3]
    with pytest.raises(InputError, match=r"^until\.metric: runs on these data do not measure 'acc"):
        Until(target=0.9).ended_at(history)


@pytest.mark.parametrize(
    ("until", "line"),
    [
        ({}, "^until: no effect without a condition; set target or seconds"),
        ({"target": 0.5, "rounds": 3}, "^until: rounds: no effect without seconds"),
        ({"seconds": 3.0}, "^until.seconds: no effect without delays"),
    ],
)
def test_conditions_without_effect_are_refused(until, line):
    data = fs.load("mnist", "by_digit", data="embedded")
    work = {"model": "softmax", "batch": 5, "step": 0.1, "steps": 1, "rounds": 2}
    with pytest.raises(InputError, match=line):
        fs.train(data, fs.scheme("md", m=5), until=until, **work)


def test_a_run_that_met_its_target_did_not_diverge_later():
    history = JobHistory.empty(runs=2)
    for t in range(3):
        history.measure(t, {"accuracy": np.array([0.9, 0.1])})
        history.charge(t + 1, {"bits": np.ones(2)})
    history.ended_at = Until(target=0.5, in_a_row=1).ended_at(history)
    history.mark_diverged(2, np.array([True, True]))
    ends = [table[table["metric"] == "diverged_at"]["value"].item() for table in history.tables()]
    assert ends == [-1, 2]


def test_rows_after_a_runs_end_are_dropped(problem):
    def trained(seeds, until=None):
        measure = measuring(1, lambda theta, _: {"test_loss": 1 / (theta**2).sum(-1).clip(1e-6)})
        sampler = problem.sampler("fedavg", len(seeds))
        callbacks = [measure, until.end] if until else [measure]
        history = train(problem.learner, sampler, seeds, 12, callbacks)
        return dict(zip(seeds, history.tables("each"), strict=True))

    full_tables = trained([1, 2, 3])
    halfway = [table["value"][table["at"] == 6].iloc[0] for table in full_tables.values()]
    until = Until(metric="test_loss", target=np.median(halfway), in_a_row=1)
    tables = trained([1, 2, 3], until)
    ends = {seed: table["at"].max() for seed, table in tables.items()}
    assert len(set(ends.values())) > 1
    for seed, table in tables.items():
        assert table.equals(trained([seed], until)[seed])
        expected = full_tables[seed][full_tables[seed]["at"] <= ends[seed]]
        assert digest(table) == digest(expected)


def test_early_rounds_are_measured_one_by_one(linear):
    problem = linear()
    measure = measuring(4, lambda theta, _: {"square": (theta**2).sum(-1)}, each_until=2)
    (table,) = train(problem.learner, problem.sampler("fedavg", 1), [0], 6, [measure]).tables()
    assert table.loc[table["metric"] == "square", "at"].tolist() == [0, 1, 2, 4, 6]
