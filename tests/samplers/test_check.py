"""All samplers pass the check; for broken samplers it names the error."""

from dataclasses import dataclass

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.samplers.basic import MD, Uniform
from fedsampling.samplers.checks import check
from fedsampling.samplers.checks.check import check_all, check_sampler, from_words
from fedsampling.samplers.protocol.base import Scheme, scheme
from fedsampling.samplers.protocol.draws import invert
from fedsampling.samplers.protocol.in_settings import expand_star
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Slots

from .rounds import mean_weights, sized, weighed

OURS = {name for name, kind in Scheme.members().items() if kind.code.startswith("fedsampling.")}
COMMON = {"m": 4, "d": 8, "first": 2, "available": 12, "report": "full", "window": 1}
SETTINGS = {  # of the samplers that need others
    "delayhet_sampling": {"m": 4, "solver": "vertex"},
    "delayhet_submodular": {"solver": "exact"},
    "fedcor": {"m": 4, "warm_up": 1, "interval": 2, "first_steps": 2, "later_steps": 2},
    "luo2022": {"m": 4, "c": 1.0},
    "stratified": {"m": 5},
    "tifl_adaptive": {"m": 4, "interval": 1},
}
VARIANTS = [
    {"name": "md", "m": 4, "duplicates": "once"},
    {"name": "clustered_similarity", "m": 5, "ward": "code", "measure": "l1"},
    *(
        {"name": "available", "available": 12, "m": 3, "report": report}
        for report in ("uniform", "optimal", "approximate")
    ),
    {"name": "available", "available": 7, "m": 3, "report": "optimal"},
    {"name": "approx_opt", "m": 4, "solver": "trust-constr", "solver_iterations": 20},
    {"name": "flanp", "first": 2, "stop": "rounds", "rounds": 1},
    {"name": "flanp", "first": 2, "stop": "statistical", "constant": 0.01},
    {"name": "cyclic", "m": 2, "by": "label"},
    {"name": "isfedavg_agents", "m": 4, "observe": "gradients"},
    {"name": "stratified", "m": 2, "by": "label"},
    {"name": "tifl", "m": 2, "odds": [3, 2, 1, 1, 1]},
    *(
        {"name": "isfedavg", "m": 3, "probabilities": rule, "variability": "estimated"}
        for rule in ("optimal", "approximate", "tracked")
    ),
]
NAMED = {name: {"name": name, **settings} for name, settings in SETTINGS.items()}
EACH = expand_star({"*": COMMON, **NAMED})
RECORDS = [*(record for name, record in EACH.items() if name in OURS), *VARIANTS]

SLOW = ("approx_opt", "luo2022")  # solve a problem in each run and round
# Compare all pairs of clients in each run; where they are unbiased, their own tests show it.
PAIRWISE = ("clustered_similarity", "delayhet_sampling", "delayhet_submodular", "divfl")


def errors(sampler):
    with pytest.raises(InputError) as error:
        check_sampler(sampler, runs=400)
    return str(error.value)


def as_test(settings):
    name = "-".join(map(str, settings.values()))
    return pytest.param(settings, id=name, marks=[pytest.mark.long] * (settings["name"] in SLOW))


@pytest.mark.parametrize("settings", [*map(as_test, RECORDS)])
def test_every_sampler_passes_the_check(settings, monkeypatch):
    """The false-alarm probability is 1e-6 for each of five populations."""
    sampler, pairwise = scheme(**settings), settings["name"] in PAIRWISE
    monkeypatch.setattr(check, "LONG_ROUNDS", 12)
    if pairwise or type(sampler).unbiased is False:  # a few runs show the mean sum of its weights
        monkeypatch.setattr(check, "LONG_RUNS", 10)
    result = check_sampler(sampler, runs=100 if pairwise else 200)
    assert "equal clients" in result.accepted
    assert len(result.accepted) + len(result.refused) == 5


@dataclass
class State:
    """Of a sampler that counts."""

    count: int


@pytest.fixture
def broken():
    """Broken samplers, which are removed from the registry after the test."""
    before = set(Scheme.members().values())

    class Biased(Uniform, name="test_biased"):
        """Is biased: has equal weights for unequal clients."""

        def weigh(self, state, slots, view, rng):
            return np.full(len(slots), 1 / self.m)

    class Mixed(Uniform, name="test_mixed"):
        """Gives each run the clients of the previous run."""

        def select(self, state, view, rng):
            slots = super().select(state, view, rng)
            return Slots.stack(list(np.roll(slots.client.reshape(view.runs, -1), 1, axis=0)))

    class Charged(Uniform, name="test_charged"):
        """Charges each run for the number of runs."""

        def exchange_bits(self, state, slots, view):
            return np.full(view.runs, 32.0 * view.runs)

    class Peeking(Uniform, name="test_peeking"):
        """Reads losses without declaring them."""

        def select(self, state, view, rng):
            view.observed["losses"]
            return super().select(state, view, rng)

    class Labelled(Uniform, name="test_labelled"):
        """Uses labels without declaring them."""

        def initial_state(self, setup):
            return State(len(setup.labels))

    class Greedy(Uniform, name="test_greedy"):
        """Declares unknown information."""

        needs = frozenset({"loses"})

    class Forgetful(Uniform, name="test_forgetful"):
        """Has memory that a checkpoint cannot save."""

        def initial_state(self, setup):
            return State(np.random.default_rng(0))

    class Tempered(MD, name="test_tempered"):
        """Draws by loss to a high power: its mean converges after millions of runs only."""

        needs = frozenset({"losses"})
        intermittent = False

        def select(self, state, view, rng):
            u = rng.uniforms("clients", self.m)
            return Slots.stack([invert(*run) for run in zip(self.chance(view), u, strict=True)])

        def weigh(self, state, slots, view, rng):
            return view.p[slots.client] / (self.m * self.chance(view)[slots.run, slots.client])

        def chance(self, view):
            scores = view.p * view.observed["losses"] ** 4
            return scores / scores.sum(axis=1, keepdims=True)

    class Careless(Tempered, name="test_careless"):
        """Computes with the losses of clients that are away."""

        intermittent = True

    samplers = set(Scheme.members().values()) - before
    yield {sampler.named.removeprefix("test_"): sampler for sampler in samplers}
    for sampler in samplers:
        sampler.named = ""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("biased", "unequal clients: round 0: biased for"),
        ("mixed", "a run's draws depend on the runs that are stacked with it"),
        ("charged", "a run's exchange_bits depend on the runs that are stacked with it"),
        ("peeking", "observed.losses: not declared in `needs`"),
        ("labelled", "has no len(); `needs` must list all information that the sampler uses"),
        ("greedy", "needs: 'loses' is unknown; did you mean 'losses'?"),
        ("careless", "clients that come and go, whose losses are NaN while they are away"),
        ("forgetful", "state.count holds a value of type Generator, which a checkpoint cannot"),
    ],
)
def test_the_check_reports_what_a_sampler_does_wrong(broken, name, message):
    assert message in errors(broken[name](m=4))


def test_rare_large_weights_are_not_called_biased(broken):
    assert len(check_sampler(broken["tempered"](m=4)).accepted) == 5


@pytest.mark.parametrize(
    "name",
    [
        "full",
        "uniform",
        "md",
        "binomial",
        "stratified",
        "kvib",
        "osmd",
        "delta",
        "isfedavg_agents",
    ],
)
@pytest.mark.parametrize("offered", [[1, 3, 4, 8, 10], [0, 2]])
def test_unbiased_samplers_are_unbiased_for_the_available_clients(name, offered):
    sizes = np.arange(4, 16)
    setup = sized(sizes, 8_000, dimension=2)
    ready = prepared(scheme(name, **({} if name == "full" else {"m": 3})), setup)
    norms = lambda slots: {"update_norms": np.ones(len(slots))}  # noqa: E731
    slots, omega = weighed(ready, setup, trained=norms, offered=offered)
    mean, error = mean_weights(slots, omega, setup)
    target = np.where(np.isin(np.arange(12), offered), sizes, 0) / sizes[offered].sum()
    assert (np.abs(mean - target) <= 5 * error + 1e-9).all()  # wrong once in 2e4 times


def test_a_sampler_that_rejects_all_populations_is_an_error_with_reasons():
    text = errors(scheme("uniform", m=61))
    assert "population: sampler.m: 61 exceeds the 60 clients" in text
    assert "population: the sampler rejects all of them; change it" in text


def test_settings_can_be_written_as_words_of_a_command():
    sampler = scheme("md", m=4, duplicates="once")
    assert from_words("md", ["m=4", "duplicates=once"]) == [sampler]
    with pytest.raises(InputError, match=r"^scheme\.m: missing; add it$"):
        from_words("md", [])
    with pytest.raises(InputError, match="did you mean 'uniform'"):
        from_words("unifrom", ["m=2"])


TWO_SAMPLERS = """
import fedsampling as fs


class Broken(fs.Sampler, name="{0}_broken"):
    m: int
    unbiased = False

    def select(self, view, rng):
        return rng.choice(view.nothing, self.m)


class Fine(fs.Sampler, name="{0}_fine"):
    m: int
    power: float = 1.0
    unbiased = False

    def select(self, view, rng):
        return rng.choice(view.n, self.m, replace=False)
"""


def test_all_samplers_of_a_file_are_checked_by_name(tmp_path, forget_own_files):
    path = tmp_path / "two.py"
    path.write_text(TWO_SAMPLERS.format("first"))
    with pytest.raises(InputError, match=r"^first_broken: equal clients: .*two.py:10, in select"):
        check_all(str(path), ["m=3", "power=2"])
    with pytest.raises(InputError, match=r"first_fine: scheme.pwer: unknown key"):
        check_all(str(path), ["m=3", "pwer=2"])
    path = tmp_path / "fixed.py"
    path.write_text(TWO_SAMPLERS.format("second").replace("view.nothing", "view.n"))
    assert [*check_all(str(path), ["m=3"])] == ["second_broken", "second_fine"]
