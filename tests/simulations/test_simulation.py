"""What holds for every kind of run: seeds stand alone, settings are plain data and make sense."""

import pytest
from small_runs import SMALL, settings, tables

from fedsampling.base.errors import InputError
from fedsampling.base.records import check
from fedsampling.simulations.selection import STUDIES
from fedsampling.simulations.simulation import Simulation

STUDIED = sorted(set(STUDIES) - {"overhead"})  # which is timed
TRACKED = {"name": "isfedavg", "m": 3, "probabilities": "tracked"}
RUNS = {
    **{kind: SMALL[kind]["sampler"] for kind in SMALL},
    **{f"selection {name}": {"name": name} for name in STUDIED},
    **{f"{kind} tracked": TRACKED for kind in ("federated", "gradient")},
}


@pytest.mark.parametrize("run", RUNS)
def test_a_seed_does_not_depend_on_its_company(run: str):
    kind = run.split()[0]
    together = tables(kind, seeds=(0, 5), sampler=RUNS[run])
    (alone,) = tables(kind, seeds=(5,), sampler=RUNS[run])
    assert together[1].equals(alone)
    assert not together[0].equals(alone)


@pytest.mark.parametrize("kind", SMALL)
def test_settings_survive_plain_data(kind: str):
    given = settings(kind)
    assert type(given).model_validate(given.model_dump(mode="json")) == given


@pytest.mark.parametrize(
    ("kind", "changes", "line"),
    [
        ("delays", {"dataset": {"name": "nycmesh", "parameters": {"log_sdd": 3.0}}}, "log_sdd"),
        (
            "delays",
            {"dataset": {"name": "synthetic", "clients": 2, "model_bytes": 1, "speed": [2, 1]}},
            "runs backwards",
        ),
        ("dsgd", {"m": 9}, "9 exceeds the 8 clients; give at most 8"),
        ("dsgd", {"eigenvalues": [2, 1]}, "eigenvalues: .* runs backwards"),
        ("dsgd", {"sampler": {"name": "approximate", "j_max": -1}}, "j_max"),
        ("quadratic", {"m": 11}, "11 exceeds the 10 clients; give at most 10"),
        ("quadratic", {"local_step": 1.5}, "local_step"),
        ("quadratic", {"sampler": {"name": "clustered"}}, "sampler.name"),
        ("selection", {"clients": 9, "sampler": {"name": "enumeration"}}, "give at most 8"),
    ],
)
def test_wrong_settings_are_named(kind: str, changes: dict, line: str):
    with pytest.raises(InputError, match=line):
        check(Simulation, {"kind": kind, **SMALL[kind], **changes}, "")
