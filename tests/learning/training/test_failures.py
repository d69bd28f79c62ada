"""Training with clients that fail after they were selected."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.helpers.small_network import SIZES, dataset, learner, samples
from tests.shared import line_of

import fedsampling as fs
from fedsampling.base.stopping import Stopped
from fedsampling.base.streams import uniforms
from fedsampling.clients.delays import Delays
from fedsampling.clients.failures import Failures, Reporting
from fedsampling.learning.training.checkpoint import Checkpoint
from fedsampling.learning.training.evaluation import evaluate
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import measuring, train
from fedsampling.learning.training.observing import observations_for
from fedsampling.learning.training.step import sample_losses
from fedsampling.runs.rows import digest
from fedsampling.samplers.protocol.base import scheme
from fedsampling.samplers.protocol.draws import distinct
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

N, SEED = len(SIZES), 4
FAILS = np.array([0.1, 0.3, 0.5, 0.2, 0.4])
WORK = {"model": "softmax", "steps": 2, "batch": 3, "step": 0.1, "seeds": 2, "rounds": 5}


def trained(sampler, rounds, reporting, work, seeds=(SEED,), checkpoint=None, each=None):
    """Train with a sampler; return the history and the learner."""
    trainer = learner(work, reporting=reporting, delays=reporting and reporting.delays)
    trainer.observations = observations_for(sampler, trainer, 4, np.random.default_rng(0))
    dimension = trainer.network.dimension
    setup = Setup(trainer.n_samples, trainer.p, len(seeds), dimension=dimension)
    callbacks = [measuring(1, lambda theta, _: evaluate(trainer, theta))]
    callbacks += [lambda moment: each(moment.theta)] if each else []
    options = [] if checkpoint is None else [checkpoint]
    history = train(trainer, prepared(sampler, setup), seeds, rounds, callbacks, *options)
    return history, trainer


def gradient(network, w, client):
    leaf = w[None].clone().requires_grad_()
    x, y = samples(client)
    loss = sample_losses(network, network.outputs(leaf, x[None]), y[None]).mean()
    return torch.autograd.grad(loss, leaf)[0][0]


def test_training_agrees_with_a_plain_loop():
    """One step of gradient descent on all samples, with weights n/m p_i / (1 − q_i)."""
    m, rounds, step, models = 3, 8, 0.5, []
    work = LocalWork(batch=int(SIZES.max()), step=step, steps=1)
    sampler = scheme("uniform", m=m)
    each = lambda theta: models.append(theta[0].clone())  # noqa: E731
    history, trainer = trained(sampler, rounds, Reporting(FAILS), work, each=each)
    w, failed = models[0], []
    for t in range(rounds):
        chosen = distinct(N, uniforms(np.array([SEED]), "clients", t, n=m))[0]
        lucky = uniforms(SEED, "failures", t, np.arange(N), n=1)[:, 0] >= FAILS
        change = torch.zeros_like(w)
        for i in chosen[lucky[chosen]]:
            omega = N / m * trainer.p[i] / (1 - FAILS[i])
            change -= omega * step * gradient(trainer.network, w, i)
        w = w + change
        failed.append(float((~lucky[chosen]).sum()))
        torch.testing.assert_close(models[t + 1], w, rtol=1e-4, atol=1e-5)
    assert 0 < sum(failed) < m * rounds
    assert [cost.item() for _, name, cost in history.charged if name == "failed"] == failed


def test_costs_are_those_counted_by_hand():
    delays = Delays(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    work = LocalWork(batch=4, step=0.1, steps=3)
    reporting = Reporting(np.zeros(N), deadline=3.5, delays=delays)
    history, trainer = trained(scheme("full"), 1, reporting, work)
    costs = {name: cost.item() for _, name, cost in history.charged}
    model = 32 * trainer.network.dimension
    assert costs["clients"] == costs["reports"] == 3
    assert costs["failed"] == 2
    assert costs["model_bits"] == 3 * model
    assert (costs["down_bits"], costs["wasted_bits"]) == (5 * model, 2 * model)
    assert (costs["seconds"], costs["wasted_seconds"]) == (3.5, 7.0)
    over = replace(reporting, deadline=np.inf, first=2)
    costs = {
        name: cost.item() for _, name, cost in trained(scheme("full"), 1, over, work)[0].charged
    }
    assert (costs["seconds"], costs["wasted_seconds"], costs["clients"]) == (2.0, 6.0, 2)


@pytest.mark.parametrize(
    ("sampler", "need", "bits"),
    [
        (scheme("kvib", m=3), "update_norms", "norm_bits"),
        (scheme("rpow_d", m=3, d=4), "work_losses", "observation_bits"),
    ],
)
def test_only_reports_are_seen_and_charged(sampler, need, bits, monkeypatch):
    seen, learn = [], type(sampler).learn

    def watched(self, state, slots, view):
        seen.append((view.reports, slots, view.observed[need]))
        return learn(self, state, slots, view)

    monkeypatch.setattr(type(sampler), "learn", watched)
    work = LocalWork(batch=4, step=0.1, steps=1)
    history, _ = trained(sampler, 6, Reporting(FAILS), work, seeds=(3, 8))
    charged = np.array([cost for _, metric, cost in history.charged if metric == bits])
    assert any(not reports.reported.all() for reports, _, _ in seen)
    for (reports, slots, values), cost in zip(seen, charged, strict=True):
        kept = reports.selected.client[reports.reported]
        np.testing.assert_array_equal(slots.client, kept)
        assert len(values) == len(slots)
        np.testing.assert_array_equal(cost, 32 * np.bincount(slots.run, minlength=2))


def test_failures_leave_the_selection_as_it_was():
    """Of a sampler that does not learn: in every round the same clients are selected."""
    history = fs.train(dataset(), fs.scheme("uniform", m=3), **WORK)
    failing = fs.train(dataset(), fs.scheme("uniform", m=3), failures=0.4, **WORK)
    pick = lambda table, name: table[table["metric"] == name]["value"].to_numpy()  # noqa: E731
    together = pick(failing, "clients") + pick(failing, "failed")
    assert together.tolist() == pick(history, "clients").tolist()
    assert pick(failing, "failed").any()
    again = fs.train(dataset(), fs.scheme("uniform", m=3), failures=[0.4] * N, **WORK)
    assert again.equals(failing)


def test_rounds_without_any_report_leave_the_model_unchanged():
    trace = np.ones((5, N), bool)
    trace[1:3] = False
    settings = WORK | {"failures": {"reports": trace}}
    for sampler in (fs.scheme("md", m=3), fs.scheme("power_of_choice", m=2, d=4)):
        history = fs.train(dataset(), sampler, **settings)
        loss = history[history["metric"] == "loss"].pivot(index="at", columns="seed")["value"]
        assert (loss.loc[1] == loss.loc[2]).all()
        assert (loss.loc[2] == loss.loc[3]).all()
        assert (loss.loc[3] != loss.loc[4]).all()


def test_a_resumed_job_has_the_same_failures(tmp_path):
    sampler, work = scheme("divfl", m=3), LocalWork(batch=4, step=0.05, steps=2)
    reporting = Reporting(FAILS, deadline=3.5, delays=Delays(np.arange(1.0, 6)))

    def digests(checkpoint, rounds=30):
        history, _ = trained(sampler, rounds, reporting, work, (3, 8), checkpoint)
        return [digest(table) for table in history.tables("each")]

    expected = digests(None)
    stops = iter([False] * 12 + [True] * 2)
    path = tmp_path / "checkpoint.npz"
    with pytest.raises(Stopped):
        digests(Checkpoint(path, seconds=np.inf, stop=lambda: next(stops)))
    assert digests(Checkpoint(path, seconds=np.inf)) == expected


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"failures": "often"}, "failures: 'often' is invalid; must be a probability, one for"),
        ({"failures": True}, "failures: True is invalid; must be a probability"),
        ({"failures": 1.5}, "failures: 1.5 is out of range; must be less than 1"),
        ({"failures": [0.5] * 3}, "failures: probability: 3 values for 5 clients; give one, or"),
        ({"failures": {"deadline": 3}}, "failures.deadline: no effect without delays; set delays"),
        ({"failures": {"first": 2}}, "failures.first: no effect without delays; set delays"),
        (
            {"failures": {"first": 3}, "delays": "synthetic"},
            "failures.first: 3 is no less than the 3 clients that sampler md selects; select more",
        ),
        (
            {"failures": {"reports": np.ones((2, N))}},
            "failures: reports: shape (2, 5); must be true or false for 5 rounds and each client",
        ),
    ],
)
def test_invalid_settings_get_one_line(settings, line):
    assert line_of(fs.train, dataset(), fs.scheme("md", m=3), **WORK, **settings).startswith(line)


def test_a_record_or_a_file_says_the_same_as_a_dict(tmp_path):
    (tmp_path / "trace.csv").write_text("client,from,to\n0,0,3\n1,0,5\n2,1,5\n3,0,5\n4,2,4\n")
    trace = np.zeros((5, N), bool)
    trace[:3, 0] = trace[:, 1] = trace[1:, 2] = trace[:, 3] = trace[2:4, 4] = True
    of_file = {"reports": tmp_path / "trace.csv"}
    histories = [
        fs.train(dataset(), fs.scheme("md", m=3), failures=failures, **WORK)
        for failures in (
            of_file,
            {"reports": trace},
            Failures.model_validate({"reports": {"path": str(tmp_path / "trace.csv")}}),
        )
    ]
    assert histories[0].equals(histories[1])
    assert histories[0].equals(histories[2])


def test_selections_are_those_that_the_costs_count():
    settings = WORK | {"failures": {"probability": 0.3, "first": 3}, "delays": "synthetic"}
    history = fs.train(dataset(), fs.scheme("md", m=4), **settings)
    selections = history.selections()
    columns = ["round", "seed", "client", "weight", "reported", "seconds"]
    assert selections.columns.tolist() == columns
    by_round = selections.groupby(["seed", "round"])
    cost = history.pivot(index=["seed", "at"], columns="metric", values="value").query("0 < at < 6")
    assert (by_round.size() == 4).all()
    assert (4 - by_round["reported"].sum()).tolist() == cost["failed"].tolist()
    reported = selections[selections["reported"]].groupby(["seed", "round"])
    assert reported["client"].nunique().tolist() == cost["clients"].tolist()
    assert (selections["weight"].gt(0) == selections["reported"]).all()
    assert len(fs.train(dataset(), fs.scheme("md", m=4), selections=False, **settings)) == len(
        history
    )


def test_selections_of_a_run_without_failures_have_its_weights():
    history = fs.train(dataset(), fs.scheme("uniform", m=3), by_client=True, **WORK)
    selections = history.selections()
    assert selections["reported"].all()
    assert selections["seconds"].isna().all()
    total = selections.groupby(["seed", "client"])["weight"].sum()
    clients = fs.by_client(history).set_index(["seed", "client"])
    assert total.tolist() == pytest.approx(clients.loc[total.index, "weight"].tolist())


def test_selections_have_the_clients_names_and_need_to_be_recorded():
    rng = np.random.default_rng(0)
    clients = {f"H{k}": (rng.normal(size=(8, 3)), rng.integers(0, 2, 8)) for k in range(4)}
    history = fs.train(fs.from_clients(clients), "full", **WORK)
    assert sorted({*history.selections()["client"]}) == ["H0", "H1", "H2", "H3"]
    without = fs.train(fs.from_clients(clients), "full", selections=False, **WORK)
    assert "without selections=False" in line_of(without.selections)


def test_a_resumed_training_has_the_same_selections(tmp_path, monkeypatch):
    settings = WORK | {"failures": 0.3, "rounds": 6}
    expected = fs.train(dataset(), fs.scheme("md", m=3), **settings)
    load, saved = Checkpoint.load, []

    def due(self):
        return self.path is not None

    monkeypatch.setattr(Checkpoint, "due", due)
    monkeypatch.setattr(Checkpoint, "load", lambda self: saved.append(load(self)) or saved[-1])

    def stop(history):
        if history["at"].max() == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fs.train(dataset(), fs.scheme("md", m=3), checkpoint=tmp_path, on_round=stop, **settings)
    resumed = fs.train(
        dataset(), fs.scheme("md", m=3), checkpoint=tmp_path, on_round=lambda _: None, **settings
    )
    assert saved[-1] is not None
    assert resumed.equals(expected)
    assert resumed.selections().equals(expected.selections())
    for _ in range(2):  # computed, then read
        finished = fs.train(dataset(), fs.scheme("md", m=3), checkpoint=tmp_path / "b", **settings)
        assert finished.selections().equals(expected.selections())
