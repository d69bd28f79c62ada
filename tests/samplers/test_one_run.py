"""Samplers written for one run agree with their stacked form."""

import numpy as np
import pandas as pd
import pytest
from tests.helpers.small_network import learner

import fedsampling as fs
from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive
from fedsampling.base.stopping import Stopped
from fedsampling.learning.training.checkpoint import Checkpoint
from fedsampling.learning.training.evaluation import evaluate
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import measuring, train
from fedsampling.learning.training.observing import observations_for
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

from .rounds import equal, play

SEEDS = [3, 0, 8]


class ByLossAlone(fs.Sampler, name="by_loss_of_one_run"):
    """A number of draws, by loss, with weights that undo the bias."""

    m: Positive
    needs = frozenset({"losses"})

    def select(self, view, rng):
        q = view.p * view.losses
        q = q / q.sum()
        clients = rng.choice(view.n, self.m, p=q)
        return clients, view.p[clients] / (self.m * q[clients])


class ByLossStacked(fs.Scheme, name="by_loss_of_a_stack"):
    """The same, stacked."""

    m: Positive
    needs = frozenset({"losses"})

    def select(self, state, view, rng):
        n, generators = len(view.p), rng.generators("clients")
        return fs.Slots.stack(
            [g.choice(n, self.m, p=q) for g, q in zip(generators, self.q(view), strict=True)]
        )

    def weigh(self, state, slots, view, rng):
        return view.p[slots.client] / (self.m * self.q(view)[slots.run, slots.client])

    def q(self, view):
        q = view.p * view.observed["losses"]
        return q / q.sum(axis=1, keepdims=True)


class Fresh(fs.Sampler, name="fresh_of_one_run"):
    """The m clients that have waited longest; weights by the norms of their updates."""

    m: Positive
    needs = frozenset({"update_norms", "updates"})
    unbiased = False

    def prepare(self, setup):
        self.waited = np.zeros(len(setup.p), np.int64)
        self.seen = 0.0

    def select(self, view, rng):
        order = np.lexsort([rng.random(view.n), -self.waited])
        self.waited += 1
        self.waited[order[: self.m]] = 0
        return order[: self.m]

    def saw_updates(self, clients, updates):
        self.seen += float(np.abs(updates).sum())

    def weigh(self, clients, view, rng):
        return view.update_norms / view.update_norms.sum()

    def measured(self):
        return {"seen": self.seen}


class Plain(fs.Sampler, name="plain_of_one_run"):
    """Draws by importance, and says what that cost."""

    m: Positive

    def select(self, view, rng):
        return rng.choice(view.n, self.m, p=view.p)

    def exchange_bits(self):
        return 64.0


class Moody(fs.Sampler, name="moody_of_one_run"):
    """Exchanges numbers, asks fewer clients and measures only in runs whose first draw is small."""

    m: Positive
    unbiased = False
    needs = frozenset({"losses"})
    value: float | None = 1.0

    def select(self, view, rng):
        self.is_low = rng.random() < 0.5
        return rng.choice(view.n, self.m)

    def exchange_bits(self):
        return 64.0 if self.is_low else None

    def asked(self):
        return np.array([0]) if self.is_low else None


class MoodyMetric(Moody, name="moody_metric_of_one_run"):
    """Also measures in some runs only, or something that is no number."""

    def measured(self):
        if self.value is None:
            return {"mood": None}
        return {"mood": self.value} if self.is_low else {}


for member in (ByLossAlone, ByLossStacked, Fresh, Plain, Moody, MoodyMetric):
    member.named = ""  # pytest imports this module before it runs others that count all samplers


def trained(scheme, seeds=SEEDS, checkpoint=None):
    """Return the tables of all seeds as one."""
    trainer = learner(LocalWork(steps=2, batch=2, step=0.1))
    sampler = prepared(scheme, Setup(trainer.n_samples, trainer.p, len(seeds)))
    trainer.observations = observations_for(sampler, trainer, 4, np.random.default_rng(0))
    callbacks = [measuring(1, lambda theta, _: evaluate(trainer, theta))]
    options = {} if checkpoint is None else {"checkpoint": checkpoint}
    tables = train(trainer, sampler, seeds, 4, callbacks, **options).tables("each")
    return pd.concat(tables, keys=seeds)


def test_one_run_and_stacked_forms_give_the_same_runs():
    pd.testing.assert_frame_equal(trained(ByLossAlone(m=2)), trained(ByLossStacked(m=2)))


def test_runs_of_one_job_are_those_of_jobs_with_one_seed():
    alone = [trained(Fresh(m=2), [seed]) for seed in SEEDS]
    pd.testing.assert_frame_equal(trained(Fresh(m=2)), pd.concat(alone))


def test_memory_of_every_run_survives_a_checkpoint(tmp_path):
    uninterrupted = trained(Fresh(m=2))
    path = tmp_path / "checkpoint.npz"
    rounds = iter([False, False, True, True])
    with pytest.raises(Stopped):
        trained(Fresh(m=2), checkpoint=Checkpoint(path, stop=lambda: next(rounds)))
    resumed = trained(Fresh(m=2), checkpoint=Checkpoint(path))
    pd.testing.assert_frame_equal(uninterrupted, resumed)


def test_runs_have_equal_weights_by_default_and_are_charged_for_exchanges():
    setup = equal(4, runs=3)
    ready = prepared(Plain(m=2), setup)
    _, omega = play(ready, setup)
    assert omega.tolist() == [0.5] * 6
    assert ready.exchange_bits().tolist() == [64.0] * 3


def test_a_runs_costs_do_not_depend_on_the_runs_of_its_job():
    """Some seeds exchange nothing and ask all clients, others exchange numbers and ask few."""
    seeds = list(range(6))
    together = trained(Moody(m=2), seeds)
    alone = [trained(Moody(m=2), [seed]).set_axis(together.loc[[seed]].index) for seed in seeds]
    pd.testing.assert_frame_equal(together, pd.concat(alone))
    for metric in ("exchange_bits", "observation_bits"):
        assert together[together.metric == metric].value.nunique() == 2


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, "measured returned 'mood' in some runs only; return it in every run, NaN where"),
        (None, "measured returned {'mood': None}; must be a dict of numbers"),
    ],
)
def test_measured_must_return_the_same_numbers_in_every_run(value, message):
    with pytest.raises(InputError, match=f", round 0: {message}"):
        trained(MoodyMetric(m=2, value=value), list(range(6)))


def test_a_run_that_diverges_does_not_affect_the_others():
    """NumPy refuses probabilities that are not finite; that run is lost, not the job."""
    setup = equal(5, runs=2)
    losses = np.array([np.ones(5), np.full(5, np.nan)])
    slots, _ = play(prepared(ByLossAlone(m=2), setup), setup, observed={"losses": losses})
    assert np.bincount(slots.run).tolist() == [2, 5]


def test_an_attribute_cannot_hide_a_method_or_change_a_setting():
    sampler = Fresh(m=2)
    for name in ("select", "unbiased", "learn"):
        with pytest.raises(AttributeError, match=f"self.{name} would hide the class's {name}; use"):
            setattr(sampler, name, 0)
    with pytest.raises(AttributeError, match=r"self\.m is a setting and cannot change"):
        sampler.m = 3
