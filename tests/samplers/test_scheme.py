"""The base class: slots, draws, settings, and samplers in users' files."""

import itertools
import re

import numpy as np
import pytest
from tests.shared import PAPERS, line_of

from fedsampling.base.errors import InputError
from fedsampling.samplers.protocol.base import Scheme, scheme
from fedsampling.samplers.protocol.draws import distinct, invert
from fedsampling.samplers.protocol.grids import drawn
from fedsampling.samplers.protocol.in_settings import expand_star
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Slots
from fedsampling.samplers.users.files import load_file
from fedsampling.workflow.plan import plan

from .rounds import equal

COMMON = {"m": 3, "available": 6, "report": "optimal"}
OPTIMAL = {"name": "isfedavg", "probabilities": "optimal"}
# Other test files define samplers of their own.
NETWORKS = {
    name for name, kind in Scheme.members().items() if kind.code.startswith("fedsampling.")
} - {"isfedavg"}


def test_slots_are_ordered_by_run_and_count_each_draw_once_by_default():
    clients = [np.array([4, 1]), np.array([], np.int64), np.array([2])]
    slots = Slots.stack(clients)
    np.testing.assert_array_equal(slots.run, [0, 0, 2])
    np.testing.assert_array_equal(slots.times, [1, 1, 1])
    often = Slots.stack(clients, [np.array([3, 1]), np.array([], np.int64), np.array([2])])
    np.testing.assert_array_equal(often.times, [3, 1, 2])
    of_members = Slots.of(np.array([[True, False, True], [False, True, False]]))
    np.testing.assert_array_equal(of_members.run, [0, 0, 1])
    np.testing.assert_array_equal(of_members.client, [0, 2, 1])
    np.testing.assert_array_equal(of_members.times, [1, 1, 1])


def test_distinct_is_uniform_over_ordered_choices():
    """Variates on the grid of (n, n − 1, n − 2) cells: each ordered choice exactly once."""
    n, m = 5, 3
    grid = itertools.product(*(np.arange(n - j) / (n - j) + 1e-9 for j in range(m)))
    choices = distinct(n, np.array(list(grid)))
    assert {tuple(row) for row in choices} == set(itertools.permutations(range(n), m))
    assert len(choices) == 60


def test_distinct_stays_in_range_for_the_largest_variate():
    u = np.full((1, 7), np.nextafter(1, 0))
    for n in (7, 300, 2**20 + 1):
        assert len(set(distinct(n, u)[0])) == 7


def test_invert_never_returns_a_client_with_probability_zero():
    tenths = np.array([0.0, *[0.1] * 10, 0.0])  # sums to 1 − 1.1e-16
    u = np.array([0.0, np.nextafter(1, 0)])
    np.testing.assert_array_equal(invert(tenths, u), [1, 10])


def test_too_many_clients_and_missing_information_are_rejected():
    setup = equal(4)
    with pytest.raises(InputError, match=r"sampler\.m: 5 exceeds the 4 clients"):
        prepared(scheme("md", m=5), setup)
    for name, settings, lacking in (("flanp", {"first": 1}, "delays"), ("target", {}, "labels")):
        with pytest.raises(InputError, match=f"{name} needs the clients' {lacking}"):
            prepared(scheme(name, **settings), setup)


def test_a_checkpoint_has_the_fields_of_the_state():
    ready = prepared(scheme("oort", m=2), equal(4, delays=np.ones(4)))
    assert ready.saved().keys() == {".utility", ".last", ".achieved", ".paces"}
    ready.state.last += 1
    other = prepared(scheme("oort", m=2), equal(4, delays=np.ones(4)))
    other.restore(ready.saved())
    assert (other.state.last == 1).all()


def test_settings_are_frozen():
    sampler = scheme("md", m=2)
    for name in ("m", "kept", "_kept"):
        with pytest.raises(AttributeError, match="keep memory in the state"):
            setattr(sampler, name, 3)


def test_each_draw_of_a_grid_has_a_value_from_another_third():
    least, beta = (
        np.array([drawn(sampler, draw)[key] for draw in (1, 2, 3)])
        for sampler, key in (("active_fl", "least"), ("f3ast", "beta"))
    )
    assert sorted(3 * least // 0.9) == [0, 1, 2]
    assert sorted(3 * np.log(beta / 0.001) // np.log(300)) == [0, 1, 2]
    weights = {drawn("divfl", draw)["weights"] for draw in (1, 2, 3)}
    assert weights == {"samples", "equal", "covered"}
    assert sorted(drawn("stratified", draw)["strata"] for draw in (1, 2, 3))[::2] == [2, 5]


def test_a_star_expands_to_all_samplers_of_networks_without_a_label():
    result = expand_star({"*": COMMON, "half": {"name": "md", "m": 5}})
    assert result["half"] == {"name": "md", "m": 5}
    assert result.keys() == NETWORKS - {"md"} | {"half"}
    assert result["uniform"] == {"name": "uniform", "m": 3}
    assert result["full"] == {"name": "full"}
    assert result["available"] == {"name": "available", **COMMON}
    assert "target" not in expand_star({"*": COMMON, "target": None})


def test_with_availability_a_star_excludes_samplers_that_need_all_clients():
    result = expand_star({"*": COMMON}, intermittent=True)
    assert {"md", "full"} <= result.keys()
    assert not {"clustered_size", "poisson", "flanp"} & result.keys()


def user_file(path, name):
    basic = "from fedsampling.samplers.basic import Uniform"
    path.write_text(f'{basic}\n\n\nclass Mine(Uniform, name="{name}"):\n    """My own."""\n')
    return path


def test_a_users_file_adds_a_sampler(tmp_path, forget_own_files):
    path = user_file(tmp_path / "mine.py", "mine_of_a_test_file")
    (sampler,) = load_file(path)
    assert load_file(path) == (sampler,)
    assert scheme("mine_of_a_test_file", m=2) == sampler(m=2)


def test_a_users_file_without_a_new_sampler_is_rejected(tmp_path):
    with pytest.raises(InputError, match="name 'md' is already used by fedsampling"):
        load_file(user_file(tmp_path / "taken.py", "md"))
    assert scheme("md", m=1).code == "fedsampling.samplers.basic"
    (tmp_path / "empty.py").write_text("from fedsampling import Scheme\n")
    for name, message in (("empty", "defines no sampler"), ("missing", "no such file")):
        with pytest.raises(InputError, match=message):
            load_file(tmp_path / f"{name}.py")


@pytest.mark.parametrize(
    ("grid", "line"),
    [
        (f"{{'m': {space}}}", "grid of mine: m = .* is invalid; must be")
        for space in ("(0.0, 1.0, 'log')", "(2, 1, 'linear')", "()", "0.5", "(1, 2, 'cubic')")
    ]
    + [("{'k': (1, 2)}", "grid of mine: 'k' is no setting; known: m"), ("3", "must be a dict")],
)
def test_an_invalid_grid_is_one_line(grid, line, tmp_path, forget_own_files):
    path = user_file(tmp_path / "mine.py", "mine")
    path.write_text(f"{path.read_text()}    grid = {grid}\n")
    assert re.search(line, line_of(load_file, path))


@pytest.mark.parametrize(
    ("experiment", "sampler", "line"),
    [
        ("rizk2022importance/regression", {"name": "divfl"}, "divfl needs gradients, which convex"),
        ("crossmatrix/digit", OPTIMAL, "isfedavg needs optimum, which networks"),
        ("fraboni2021clustered/allocation", {"name": "uniform"}, "uniform is not supported here;"),
    ],
)
def test_a_run_kind_rejects_samplers_that_it_does_not_support(experiment, sampler, line):
    paper, _, experiment = experiment.partition("/")
    changes = {paper: {experiment: {"samplers": {"x": sampler | {"m": 3}}}}}
    settings = {"scale": "quick", "papers": [paper], "overrides": changes}
    message = line_of(lambda: plan(settings, PAPERS).jobs)
    assert message.startswith(f"overrides.{paper}.{experiment}.samplers.x: {line}")
