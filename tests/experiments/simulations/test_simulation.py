"""What holds for every kind of run: seeds stand alone, settings are plain data and make sense."""

import numpy as np
import pytest
from papers.harshvardhan2025latency.simulations_selection import STUDIES
from tests.helpers.small_runs import NOWHERE, SMALL, load_all_kinds, settings, tables

from fedsampling.base.errors import InputError
from fedsampling.base.nested import merge
from fedsampling.base.records import check
from fedsampling.experiments.simulations.simulation import Simulation

STUDIED = sorted(set(STUDIES) - {"overhead"})  # which is timed
IJCNN1 = {"name": "ijcnn1", "agents": 10, "smallest": 5, "largest": 9, "alpha": None}
TRACKED = {"name": "isfedavg", "m": 3, "probabilities": "tracked"}
RUNS = {kind: SMALL[kind]["sampler"] for kind in SMALL}
RUNS |= {f"selection {name}": {"name": name} for name in STUDIED}
RUNS |= {f"{kind} tracked": TRACKED for kind in ("federated", "gradient")}


def test_every_kind_has_a_small_run():
    load_all_kinds()
    networks = {"network"}  # in single precision, whose rounding depends on company
    kinds = Simulation.members().items()  # also that of a guide, if its test ran before
    ours = {name for name, kind in kinds if not kind.__module__.startswith("papers.mypaper")}
    assert ours == {*SMALL, *networks}


@pytest.mark.parametrize("run", RUNS)
def test_a_seed_does_not_depend_on_its_company(run):
    kind = run.split()[0]
    stacked = tables(kind, seeds=(0, 5), sampler=RUNS[run])
    (single,) = tables(kind, seeds=(5,), sampler=RUNS[run])
    assert stacked[1].equals(single)
    assert not stacked[0].equals(single)


@pytest.mark.parametrize("kind", SMALL)
def test_settings_survive_plain_data(kind):
    run = settings(kind)
    assert type(run).model_validate(run.model_dump(mode="json")) == run


@pytest.mark.parametrize(
    ("kind", "changes", "line"),
    [
        ("weights", {"m": 6}, "m: 6 exceeds the 5 clients; give at most 5"),
        ("dsgd", {"eigenvalues": [2, 1]}, "eigenvalues: .* is invalid; put the smaller"),
        ("inclusion", {"size": 5}, "size: 5 exceeds 4 units"),
        ("inclusion", {"probabilities": [0.5, 0.5]}, "probabilities: 2 values for 4 units"),
        ("federated", {"work": {"batch": [1, 13]}}, "work.batch: 13 exceeds the 12 samples"),
        ("federated", {"dataset": IJCNN1, "work": {"batch": [6, 6]}}, "work.batch: 6 exceeds"),
    ],
)
def test_wrong_settings_are_named(kind, changes, line):
    load_all_kinds()
    with pytest.raises(InputError, match=line):
        check(Simulation, {"kind": kind, **merge(SMALL[kind], changes)}, "")


@pytest.mark.parametrize(
    ("kind", "largest"),
    [
        ("federated", {"sampler": {"m": 8}, "work": {"batch": [12, 12]}}),
        ("weights", {"m": 5}),
        ("inclusion", {"size": 4}),
    ],
)
def test_all_clients_and_whole_agents_are_allowed(kind, largest):
    load_all_kinds()
    run = check(Simulation, {"kind": kind, **merge(SMALL[kind], largest)}, "")
    (table,) = run.simulate("embedded", [0], NOWHERE).tables
    assert np.isfinite(table["value"]).all()
