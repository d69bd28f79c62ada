"""Delays and availability from users' arrays, tables and files."""

import numpy as np
import pandas as pd
import pytest
from tests.shared import line_of

import fedsampling as fs
from fedsampling.experiments.simulations.simulation import RunContext, Simulation
from fedsampling.experiments.specs import RunSpec

RNG = np.random.default_rng(0)
NAMES = [f"H{k}" for k in range(6)]
DATA = {name: (RNG.normal(size=(20, 3)), RNG.integers(0, 2, 20)) for name in NAMES}
WORK = {"model": "softmax", "steps": 1, "batch": 5, "step": 0.1, "rounds": 5}
SECONDS = np.arange(30.0).reshape(5, 6)
BY_ROUND = pd.DataFrame(
    {"client": NAMES * 5, "round": np.repeat(range(5), 6), "seconds": SECONDS.ravel()}
)
CONSTANT = {"client": NAMES[::-1], "seconds": [6, 5, 4, 3, 2, 1]}
TRACE = {"client": [*NAMES, "H0"], "from": [0, 0, 0, 2, 2, 3, 4], "to": [2, 2, 2, 4, 5, 4, 5]}
AVAILABLE = [3, 3, 2, 3, 2]
UNTIL_3 = {"client": NAMES, "from": [0] * 6, "to": [3] * 6}


def trained(metric, sampler=None, **settings):
    data = fs.from_clients(DATA, test_share=0.2)
    history = fs.train(data, sampler or fs.scheme("full"), **WORK, **settings)
    return history[history["metric"] == metric]["value"].tolist()


@pytest.mark.parametrize("kind", ["array", "frame", "csv", "record"])
def test_seconds_by_client_and_round_are_the_clock(kind, tmp_path):
    path = tmp_path / "delays.csv"
    BY_ROUND.sample(frac=1, random_state=0).to_csv(path, index=False)
    delays = {
        "array": SECONDS,
        "frame": BY_ROUND,
        "csv": path,
        "record": {"name": "recorded", "path": str(path)},
    }
    assert trained("seconds", delays=delays[kind]) == [5, 11, 17, 23, 29]


def test_rows_go_to_the_clients_of_their_names_and_samplers_see_the_means():
    fastest = fs.scheme("flanp", first=1, stop="rounds")
    assert trained("seconds", fastest, delays=CONSTANT) == [1] * 5
    assert trained("seconds", fastest, delays=SECONDS) == [0, 6, 12, 18, 24]
    assert trained("seconds", fastest, delays=SECONDS[0, ::-1]) == [0] * 5


def test_a_trace_gives_the_available_clients(tmp_path):
    assert trained("clients", availability=TRACE) == AVAILABLE
    pd.DataFrame(TRACE).to_csv(tmp_path / "trace.csv", index=False)
    record = {"name": "recorded", "path": str(tmp_path / "trace.csv")}
    assert trained("clients", availability=record) == AVAILABLE
    assert trained("clients", availability={**record, "round_seconds": 0.5}) == [3, 3, 3, 3, 2]
    mask = np.tri(5, 6, 1)
    assert trained("clients", availability=mask) == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(("row", "interval"), [(3, (2, 4)), (0, (-1, 2))])
def test_a_trace_repeats_after_its_period_and_has_no_interval_beyond_it(row, interval, tmp_path):
    path = tmp_path / "trace.csv"
    record = {"name": "recorded", "path": str(path), "period": 3.0}
    table = pd.DataFrame({"client": NAMES, "from": [0, 0, 0, 2, 2, 1], "to": [2, 2, 2, 3, 3, 3]})
    table.to_csv(path, index=False)
    assert trained("clients", availability=record) == [3, 4, 3, 3, 4]
    table.loc[row, ["from", "to"]] = interval
    table.to_csv(path, index=False)
    line = line_of(trained, "clients", availability=record)
    assert "from and to must be from 0 to the period, 3.0; split intervals that cross" in line


def test_the_pipeline_gives_the_same_numbers_and_its_hash_covers_the_files(tmp_path):
    rows = [pd.DataFrame(x).assign(y=y, client=name) for name, (x, y) in DATA.items()]
    tables = {"data": pd.concat(rows), "delays": BY_ROUND, "trace": pd.DataFrame(TRACE)}

    def simulation(**changed):
        for name, table in (tables | changed).items():
            table.to_csv(tmp_path / f"{name}.csv", index=False)
        settings = {
            "kind": "network",
            "dataset": {"name": "files", "path": str(tmp_path / "data.csv")},
            "inputs": "raw",
            "model": {"name": "softmax"},
            "work": {key: WORK[key] for key in ("steps", "batch", "step")},
            "sampler": {"name": "full"},
            "rounds": 5,
            "evaluation": {"every": 1},
            "delays": {"name": "recorded", "path": str(tmp_path / "delays.csv")},
            "availability": {"name": "recorded", "path": str(tmp_path / "trace.csv")},
        }
        return Simulation.model_validate(settings)

    def hash_of(run):
        return RunSpec(run.model_dump(mode="json"), "generated", 0).hash

    run = simulation()
    table = run.simulate("official", [0], RunContext(tmp_path, None)).tables[0]
    expected = trained("seconds", delays=BY_ROUND, availability=TRACE)
    assert table[table["metric"] == "seconds"]["value"].tolist() == expected == [2, 8, 16, 23, 28]
    assert hash_of(simulation()) == hash_of(run)
    later = tables["trace"].assign(to=5)
    changed = {hash_of(simulation(delays=BY_ROUND[:24])), hash_of(simulation(trace=later))}
    assert len({*changed, hash_of(run)}) == 3


def test_a_file_of_delays_with_semicolons_gets_a_fix_that_works(tmp_path):
    path = tmp_path / "delays.csv"
    pd.DataFrame(CONSTANT).assign(seconds=0.5).to_csv(path, index=False, sep=";", decimal=",")
    line = line_of(trained, "seconds", delays=path)
    assert line.endswith("separated by ';': save it with ',' and decimal points")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"delays": SECONDS[0, :3]}, r"delays: shape \(3,\); the last axis must be 6 clients"),
        ({"delays": SECONDS[:3]}, "delays: 3 rounds, but 5 are trained; add"),
        ({"delays": -SECONDS}, "delays: seconds must be finite and not negative"),
        ({"delays": BY_ROUND[1:]}, "delays: 0 rows for client 'H0' in round 0; must be one"),
        ({"delays": BY_ROUND.assign(round=10**18)}, "delays: 0 rows for client 'H0' in round 0"),
        ({"delays": {"client": NAMES[1:], "seconds": [1] * 5}}, "no row for client 'H0'; add it"),
        ({"delays": {"client": [*NAMES, "X"], "seconds": [1] * 7}}, "sample of client 'X'; remove"),
        ({"delays": {"client": NAMES, "second": [1] * 6}}, "no column 'seconds'; it has client, s"),
        ({"delays": {name: 1.0 for name in NAMES}}, "column 'H0': float is invalid; must be an ar"),
        ({"delays": "missing.csv"}, "delays: path: 'missing.csv' does not exist; check the path"),
        ({"availability": np.ones((3, 6))}, r"availability: shape \(3, 6\); must be true or false"),
        ({"availability": {**TRACE, "to": [2] * 7}}, "from and to must be numbers, and from less"),
        ({"availability": UNTIL_3}, "no client is available in 2 of 5 rounds, first in round 3"),
    ],
)
def test_what_does_not_fit_is_one_line(settings, line):
    with pytest.raises(fs.InputError, match=line) as error:
        trained("seconds", **settings)
    assert len(error.value.lines) == 1
