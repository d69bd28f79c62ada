"""Hostile samplers: each gives the numbers of its harmless twin, or one line, and harms no other.

A hostile sampler is a harmless one with a statement that changes arrays, remembers where it must
not, or draws from the wrong generator.  It stands after the sampler's own use of the array, so a
harmless twin, without the statement, must give the same numbers.
"""

import numpy as np
import pytest
from tests.samplers.guests.hostile import FORMS, sampler, trained

import fedsampling as fs
from fedsampling.base.errors import InputError

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


@pytest.mark.long
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
