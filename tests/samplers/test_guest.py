"""Hostile samplers: each gives the numbers of its harmless twin, or one line, and harms no other.

A hostile sampler is a harmless one with a statement that changes arrays, remembers where it must
not, or draws from the wrong generator.  It stands after the sampler's own use of the array, so a
harmless twin, without the statement, must give the same numbers.
"""

import itertools
import linecache
import random
from collections import deque
from textwrap import indent

import numpy as np
import pytest
import torch

import fedsampling as fs
from fedsampling.adapters.cohort import Cohort
from fedsampling.base.errors import InputError
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.guest import pack, unpack

MD = {"name": "md", "m": 3}
SHORT = {"model": "softmax", "steps": 1, "batch": 2, "step": 0.1, "rounds": 3, "seeds": 2}
WORK = SHORT | {"delays": "synthetic"}
HEAD = """
import random, numpy as np, torch, fedsampling as fs
from dataclasses import dataclass
from typing import ClassVar
from numpy.random import default_rng
COUNT, LOG, START, GENERATOR, NAN = 0, [], np.zeros(8), np.random.default_rng(0), np.nan
def bump():
    global COUNT
    COUNT += 1
@dataclass
class State:
    total: np.ndarray
    shared: np.ndarray
    p: np.ndarray
    sums: np.ndarray
class Hostile(fs.{base}, name="{name}"):
    m: int = 3
    seen: ClassVar[list] = []
    needs = {{"losses", "gradients", "delays", "updates", "update_norms", "work_losses"}}
    unbiased = False
"""
ONE_RUN = (
    HEAD.replace("{base}", "Sampler")
    + """
    def prepare(self, setup):
        self.total, self.shared, self.p = np.zeros(len(setup.p)), START, setup.p
{prepare}
    def select(self, view, rng):
        score = view.p * view.losses * view.n_samples + view.gradients.sum(1) ** 2 + self.total
        clients = np.argsort(-score / view.delays[view.offered])[: self.m]
        self.kept = clients
{select}
        return clients
    def saw_updates(self, clients, updates):
        self.total[clients] += np.abs(updates).sum(1)
{saw_updates}
    def weigh(self, clients, view, rng):
        omega = view.p[clients] * view.update_norms + view.work_losses
        omega = omega / omega.sum()
{weigh}
        return omega
    def measured(self):
{measured}
        return {{"total": self.total.sum()}}
"""
)
STACKED = (
    HEAD.replace("{base}", "Scheme")
    + """
    def initial_state(self, setup):
        state = State(np.zeros((setup.runs, len(setup.p))), START, setup.p, np.zeros(setup.runs))
{prepare}
        return state
    def select(self, state, view, rng):
        seen = view.observed
        score = view.p * seen["losses"] * view.n_samples + seen["gradients"].sum(2) ** 2
        score = score + state.total
        clients = np.argsort(-score / seen["delays"][view.offered], axis=1)[:, : self.m]
        slots = fs.Slots.stack(clients)
{select}
        return slots
    def weigh(self, state, slots, view, rng):
        omega = view.p[slots.client] * view.observed["update_norms"] + view.observed["work_losses"]
        omega = omega / np.bincount(slots.run, omega)[slots.run]
{weigh}
        return omega
    def learn(self, state, slots, view):
        updates = view.observed["updates"]
        state.total[slots.run, slots.client] += np.abs(updates).sum(1)
        state.sums += state.total.sum(1)
{saw_updates}
        return state
    def addition(self, state, slots, omega):
{addition}
        return None
    def measured(self, state, slots, omega, view):
{measured}
        return {{"total": state.sums}}
"""
)
FORMS = {"one run": ONE_RUN, "stacked": STACKED}
VIEW = ("view.p", "view.n_samples", "view.offered")
OBSERVED = ("losses", "gradients", "delays")
SETUP = ("setup.p", "setup.n_samples", "setup.labels", "setup.delays")
# Arrays that each method can reach, by form.
ARRAYS = {
    "one run": {
        "prepare": SETUP,
        "select": (*VIEW, *(f"view.{name}" for name in OBSERVED), "self.p"),
        "saw_updates": ("clients", "updates", "self.kept"),
        "weigh": ("clients", *VIEW, "view.update_norms", "view.work_losses", "self.kept"),
        "measured": ("self.kept", "self.p"),
    },
    "stacked": {
        "prepare": SETUP,
        "select": (*VIEW, *(f"view.observed['{name}']" for name in OBSERVED), "state.p"),
        "saw_updates": ("slots.run", "slots.client", "slots.scale", "updates"),
        "weigh": ("slots.run", "slots.times", *VIEW, "view.observed['update_norms']", "rng.seeds"),
        "addition": ("state.total", "omega"),
        "measured": ("state.sums", "state.p", "slots.client"),
    },
}
OPERATIONS = (
    "{} *= 2",
    "{}[...] = 0",
    "{}.sort()",
    "{}.fill(3)",
    "{}.put(0, 1)",
    "{}.resize(1, refcheck=False)",
    "{}.T[...] = 1",
    "{}.view(np.uint8)[...] = 0",
    "{0}.flags.writeable = True; a = {0}; a *= 2",
    "np.add.at({}, 0, 1)",
    "np.copyto({}, 0)",
    "np.negative({0}, out={0})",
    "np.nan_to_num({}, copy=False, nan=1)",
    "np.random.default_rng(0).shuffle({})",
    "torch.from_numpy({}).mul_(2)",
    "a = {}; a -= 1",
    "a, *_ = np.atleast_2d({}); a[...] = 2",
)
# What changes nothing that others see, and what is refused.
HARMLESS = (
    "view.observed.clear()",
    "view.observed['losses'] = 0",
    "np.seterr(all='raise')",
    "self.remembered = view",
    "default_rng(0).random()",
    "list(map(str, LOG))",
    "NAN != 0",
)
REFUSED = (
    "np.random.rand()",
    "np.random.seed(random.getrandbits(30))",
    "random.random()",
    "torch.rand(1)",
    "default_rng().random()",
    "GENERATOR.random()",
    "self.seen.append(1)",
    "type(self).seen = [1]",
    "bump()",
    "LOG.append(1)",
    "self.shared[0] += 1",
    "raise SystemExit(0)",
    "1 / 0",
    "self.m = 4",
    "view.p = None",
    "view.nothing",
)
RETURNED = (
    "None", "3", "'ab'", "[-1]", "[8]", "[0.5]", "[[0, 1]]", "[[0], [1, 2]]", "['a']", "[None]",
    "[2**70]", "{0, 1}", "{0: 1}", "iter([0])", "slice(2)", "view", "rng", "[np.nan]", "object()",
    "np.ones(8, bool)", "([0, 1], [1])", "([0], [np.nan])", "([0], ['x'])", "([0], None, 1)",
    "np.array([0, 1], object)", "torch.tensor([0.5])", "type(clients)", "lambda: clients",
    "np.ma.array([0, 1], mask=[0, 1])", "([0, 1], np.ma.array([0.5, 0.5], mask=[0, 1]))",
)  # fmt: skip
SAME = ("clients.tolist()", "tuple(clients)", "clients.astype(np.uint8)", "torch.tensor(clients)")
numbers = itertools.count()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 3)).astype(np.float32), rng.integers(3, size=64)
    return fs.federated(x, y, clients=np.repeat(np.arange(8), 8), test_share=0.25)


@pytest.fixture(scope="module", autouse=True)
def hostile_samplers_are_forgotten():
    yield
    while hostile := [
        member for name, member in Scheme.members().items() if name.startswith("hostile_")
    ]:  # a class hides another one with its name
        for member in hostile:
            member.named = ""


def sampler(form, method="", statement="pass", returned="clients", gradients=True):
    """Create the sampler of a form with a statement in one of its methods."""
    name = f"hostile_{next(numbers)}"
    methods = ("prepare", "select", "saw_updates", "weigh", "addition", "measured")
    bodies = {key: statement if key == method else "pass" for key in methods}
    text = FORMS[form].format(name=name, **{k: indent(v, " " * 8) for k, v in bodies.items()})
    text = text.replace("return clients", f"return {returned}", 1)
    if form == "stacked":  # which has no attributes; initial_state knows the shared array
        text = text.replace("self.shared", "state.shared")
    if not gradients:
        text = text.replace('"gradients", ', "").replace("view.gradients.sum(1) ** 2", "0")
    linecache.cache[f"{name}.py"] = len(text), None, text.splitlines(keepends=True), f"{name}.py"
    variables = {"__name__": name}
    exec(compile(text, f"{name}.py", "exec"), variables)
    return variables["Hostile"]()


def trained(data, own):
    return fs.train(data, own, **WORK)["value"].to_numpy()


def outcome(data, own, expected):
    """Train with a sampler and with MD; return what happened to both."""
    arrays = [data.p, data.n_samples, data.x, data.y, data.x_test, data.start]
    before = [array.copy() for array in arrays]
    state = np.geterr()
    try:
        values = trained(data, own)
    except InputError as error:
        is_line = len(error.lines) == 1 and own.named in str(error)
        result = "refused" if is_line else "wrong"
    else:
        result = "equal" if np.array_equal(values, expected, equal_nan=True) else "wrong"
    assert all(map(np.array_equal, arrays, before))
    assert np.geterr() == state
    return result


@pytest.fixture(scope="module")
def expected(data):
    return {form: trained(data, sampler(form)) for form in FORMS}


PLACES = [
    (form, method, array)
    for form, methods in ARRAYS.items()
    for method, arrays in methods.items()
    for array in arrays
]
CASES = [(*place, operation) for place in PLACES for operation in OPERATIONS]


def check_case(data, expected, form, method, array, operation):
    own = sampler(form, method, operation.format(array))
    assert outcome(data, own, expected[form]) in ("equal", "refused")


@pytest.mark.parametrize("number", range(0, len(CASES), 37))
def test_arrays_cannot_be_changed(data, expected, number):
    check_case(data, expected, *CASES[number])


@pytest.mark.long(minutes=0.03)
@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_no_array_can_be_changed_by_any_operation(data, expected, place):
    for operation in OPERATIONS:
        check_case(data, expected, *place, operation)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("statement", HARMLESS)
def test_private_changes_have_no_effect(data, expected, form, statement):
    if form == "stacked":
        statement = statement.replace("self.remembered = view", "remembered = view")
    assert outcome(data, sampler(form, "select", statement), expected[form]) == "equal"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("statement", REFUSED)
def test_shared_state_and_failures_are_one_line(data, expected, form, statement):
    for method in ("select", "weigh"):
        own = sampler(form, method, statement)
        assert outcome(data, own, expected[form]) == "refused", statement
    if "view" not in statement:
        assert outcome(data, sampler(form, "prepare", statement), expected[form]) == "refused"


@pytest.mark.parametrize(
    ("value", "result"), [*((v, "refused") for v in RETURNED), *((v, "equal") for v in SAME)]
)
def test_clients_may_be_any_sequence_of_integers_and_nothing_else(data, expected, value, result):
    own = sampler("one run", returned=value)
    assert outcome(data, own, expected["one run"]) == result


def test_the_error_names_the_line_and_the_fix(data):
    for statement in (
        "chance = view.p; chance *= 2",
        "np.multiply(view.losses, 2,\n    out=view.n_samples)",
        "self.p[0] = 1",
    ):
        own = sampler("one run", "select", statement)
        line = rf"round 0: {own.named}.py:\d+, in select: .*read-only; .*: copy it first"
        with pytest.raises(InputError, match=line):
            trained(data, own)
    with pytest.raises(InputError, match=line):
        fs.check_sampler(own)


def test_a_base_class_in_another_file_does_not_end_the_process(data):
    own = type(sampler("one run", "select", "raise SystemExit(0)"))
    inherited = type("Inherited", (own,), {"__module__": "elsewhere"}, name=own.named)
    with pytest.raises(InputError, match=rf"sampler {own.named}, round 0: SystemExit\(0\); raise"):
        trained(data, inherited())


@pytest.mark.parametrize("needs", [None, {"losses": 1}, {None}, 3, True], ids=repr)
def test_needs_are_names(needs):
    with pytest.raises(InputError, match=r"class Own: needs = .* is invalid; must be a set of na"):
        type("Own", (fs.Sampler,), {"needs": needs}, name="hostile_needs")


@pytest.mark.parametrize("form", FORMS)
def test_no_number_is_recorded_twice(data, form):
    """A comparison by accuracy averaged the server's number and the sampler's."""
    for name in ("accuracy", "loss", "model_bits"):
        total = "state.sums" if form == "stacked" else "self.total.sum()"
        own = sampler(form, "measured", f"return {{'{name}': {total}}}")
        with pytest.raises(InputError, match=f"'{name}'.*; use another name"):
            trained(data, own)


@pytest.mark.parametrize(
    ("method", "value"),
    [("exchange_bits", "-1"), ("exchange_bits", "np.nan"), ("asked", "[-1]"), ("asked", "[0.5]")],
)
def test_costs_of_a_sampler_are_possible(data, method, value):
    own = type(sampler("one run"))
    numbers = {method: eval(f"lambda self: {value}"), "__module__": own.__module__}
    changed = type("Changed", (own,), numbers, name=own.named)
    with pytest.raises(InputError, match=rf"sampler {own.named}, round 0: {method} returned"):
        trained(data, changed())


# Whatever a user's function can reach of the data.

WRITES = ("data.x *= 2", "data.y[0] = 1", "data.x_test.fill(0)", "data.y_test.sort()",
          "data.p[:] = 1", "data.start[0] = 1", "data.n_samples[0] = 1", "seconds.fill(9)",
          "available.fill(False)")  # fmt: skip


@pytest.mark.parametrize("statement", WRITES)
def test_functions_cannot_change_the_data_that_they_reach(data, statement):
    def write(*_, **__):
        exec(statement, {"data": data, **arrays})

    def loss(outputs, targets):
        write()
        return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")

    writers = ({}, {"loss": loss}, {"metrics": {"mine": lambda *_: write() or 1}},
               {"on_round": write})  # fmt: skip
    values = []
    for writer in writers:
        arrays = {"seconds": np.arange(1.0, 9), "available": np.ones((3, 8), bool)}
        options = {"delays": arrays["seconds"], "availability": arrays["available"]}
        state = data.x.copy(), data.p.copy()
        try:
            table = fs.train(data, MD, **SHORT, **options, **writer)
        except (InputError, ValueError) as error:
            assert "is read-only" in str(error)  # noqa: PT017
        else:
            values.append(table[table["metric"] != "mine"]["value"].to_numpy())
        assert np.array_equal(data.x, state[0])
        assert np.array_equal(data.p, state[1])
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], rtol=1e-6)


def test_other_frameworks_have_the_same_boundary():
    own = sampler("one run", "weigh", "clients[0] = 0", gradients=False)
    cohort = Cohort(own, np.arange(4, 12), 3, delays=np.ones(8))
    clients = cohort.select(0, losses=np.ones(8))
    with pytest.raises(InputError, match=r"in weigh: .*is read-only; .*: copy it first"):
        cohort.weigh(np.ones((len(clients), 3), np.float32), np.ones(len(clients)))


# Callbacks.

MISCHIEF = (
    "history.loc[:, 'value'] = 0",
    "history.drop(history.index, inplace=True)",
    "history.values[:] = 7",
    "kept.append(history); kept[0].iloc[:, 3] = 1",
    "np.random.seed(0); random.seed(0); torch.manual_seed(0)",
    "np.seterr(all='raise')",
    "torch.set_grad_enabled(False)",
    "torch.set_default_dtype(torch.float64)",
    "fs.train(data, 'full', **{**work, 'rounds': 1})",
    "metrics['other'] = max",
)


@pytest.mark.parametrize("statement", MISCHIEF)
def test_a_callback_changes_no_result(data, statement):
    kept, metrics = [], {"one": lambda *_: 1}

    def on_round(history):
        names = {"history": history, "kept": kept, "data": data, "work": WORK, "metrics": metrics}
        exec(statement, {"np": np, "random": random, "torch": torch, "fs": fs, **names})

    expected = fs.train(data, MD, metrics=metrics, **WORK)
    state = np.geterr(), torch.is_grad_enabled(), torch.get_default_dtype()
    try:
        history = fs.train(data, MD, metrics=metrics, on_round=on_round, **WORK)
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        np.seterr(**state[0])
    assert history.equals(expected)


@pytest.mark.parametrize("value", ["yes", 1, [], np.zeros(2)], ids=repr)
def test_a_callback_returns_a_truth_value(data, value):
    with pytest.raises(InputError, match=r"on_round: returned .*; must be True, False or None"):
        fs.train(data, MD, on_round=lambda history: value, **WORK)


def test_errors_of_a_callback_pass_unchanged(data):
    def on_round(history):
        raise KeyError("pruned")

    for own in (MD, sampler("one run")):
        with pytest.raises(KeyError, match="pruned"):
            fs.train(data, own, on_round=on_round, **WORK)


# Attributes of a sampler are packed into a checkpoint's arrays and unpacked.

PLAIN = {
    "number": 3,
    "share": 0.1 + 0.2,
    "nothing": None,
    "name": "ω",
    "far": float("inf"),
    "nested": {"a": [1, (2, 3)], 4: {5, 6}, (7, 8): frozenset({9})},
    "last": deque([1, 2], maxlen=2),
    "scalar": np.float32(0.1),
}


def test_plain_data_and_arrays_survive_packing(tmp_path):
    arrays = {"x": np.arange(6).reshape(2, 3), "few": [np.zeros((0, 4), np.float32), None]}
    np.savez(
        tmp_path / "kept.npz", allow_pickle=False, **pack(PLAIN | arrays, "sampler mine: self")
    )
    with np.load(tmp_path / "kept.npz", allow_pickle=False) as file:
        unpacked = unpack({name: file[name] for name in file.files})
    np.testing.assert_array_equal(unpacked.pop("x"), arrays["x"])
    few = unpacked.pop("few")[0]
    assert (few.shape, few.dtype) == ((0, 4), np.float32)
    assert unpacked == PLAIN
    assert [type(unpacked[name]) for name in PLAIN] == [type(value) for value in PLAIN.values()]
    assert unpacked["last"].maxlen == 2


def test_an_attribute_that_cannot_be_stored_is_an_error_that_names_it():
    line = r"sampler mine: self\.rng holds a value of type Generator"
    with pytest.raises(InputError, match=line):
        pack({"rng": np.random.default_rng(0)}, "sampler mine: self")
