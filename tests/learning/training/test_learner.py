"""Stacked local training agrees with a loop over clients."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.helpers.small_network import learner, samples

from fedsampling.base.streams import Draws
from fedsampling.learning.training.evaluation import client_losses
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.participation import Participation
from fedsampling.samplers.basic import MD
from fedsampling.samplers.oort import Oort
from fedsampling.samplers.protocol.slots import Slots

SEEDS = np.array([4, 9, 2])
WORK = {
    "steps": {},
    "epochs": {"epochs": 2},
    "dropped remainder": {"epochs": 1, "remainder": False},
    "prox": {"prox": 0.5},
    "momentum": {"momentum": 0.9},
    "weight decay": {"weight_decay": 0.1},
    "clip": {"clip": 0.05},
    "together": {"epochs": 2, "momentum": 0.5, "weight_decay": 0.2, "clip": 0.1, "prox": 0.3},
    "decay": {"decay": 0.5},
}
WORK = {
    name: LocalWork(batch=4, step=0.1, steps=None if "epochs" in work else 3, **work)
    for name, work in WORK.items()
}


def plain(learner, theta, slots, rng):
    """Train in a loop over clients, with an ordinary module and SGD."""
    work = learner.local
    batches = work.batches(learner.n_samples[slots.client], slots, rng)
    updates = []
    for slot, (run, client) in enumerate(zip(slots.run, slots.client, strict=True)):
        model = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4)
        )
        torch.nn.utils.vector_to_parameters(theta[run].clone(), model.parameters())
        first = [parameter.detach().clone() for parameter in model.parameters()]
        x, y = samples(client)
        step = work.step * work.decay**rng.round
        sgd = torch.optim.SGD(model.parameters(), step, work.momentum, 0, work.weight_decay)
        for s in range(len(batches.size)):
            size = batches.size[s, slot]
            if size == 0:
                continue
            rows = batches.index[s, slot, :size]
            loss = F.cross_entropy(model(x[rows]), y[rows])
            for parameter, begin in zip(model.parameters(), first, strict=True):
                loss = loss + work.prox / 2 * (parameter - begin).square().sum()
            sgd.zero_grad()
            loss.backward()
            if work.clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), work.clip)
            sgd.step()
        end = torch.nn.utils.parameters_to_vector(model.parameters())
        updates.append(end.detach() - theta[run])
    return torch.stack(updates)


THREE_RUNS = Slots.stack([np.array([2, 0, 1]), np.array([1, 3]), np.array([4])])
DRAWN_TWICE = Slots.stack([np.array([2, 0, 2]), np.array([1, 3]), np.array([4])])


def silent(scheme):
    """Return a sampler that was not prepared, and has nothing to report."""
    nothing = {"asked": lambda: None, "exchange_bits": lambda: None, "measured": dict}
    return SimpleNamespace(needs=frozenset(scheme.needs), named=scheme.named, **nothing)


class TestLocalWork:
    @pytest.mark.parametrize("work", WORK.values(), ids=WORK)
    def test_updates_agree_with_a_loop_over_clients(self, work):
        trainer = learner(work)
        theta = trainer.start(SEEDS)
        rng = Draws(SEEDS, 3)
        result = trainer.work(theta, DRAWN_TWICE, silent(MD(m=3)), rng)
        expected = plain(trainer, theta, DRAWN_TWICE, rng)
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-6)
        assert not torch.equal(result[0], result[2])  # of one client, with different batches

    @pytest.mark.parametrize("work", WORK.values(), ids=WORK)
    def test_a_slot_does_not_depend_on_the_slots_stacked_with_it(self, work, monkeypatch):
        trainer = learner(work)
        theta = trainer.start(SEEDS)
        stacked = trainer.work(theta, THREE_RUNS, silent(MD(m=3)), Draws(SEEDS, 3))
        second = Slots.stack([THREE_RUNS.client[3:5]])  # whose clients have fewer samples
        single = trainer.work(theta[1:2], second, silent(MD(m=3)), Draws(SEEDS[1:2], 3))
        assert torch.equal(stacked[3:5], single)
        monkeypatch.setattr(trainer.stacks, "size", 2)
        two_at_a_time = theta, THREE_RUNS, silent(MD(m=3)), Draws(SEEDS, 3)
        chunked = trainer.work(*two_at_a_time)
        assert torch.equal(stacked, chunked)

    def test_a_sampler_observes_its_slots_losses_and_is_charged(self):
        trainer = learner(LocalWork(batch=100, step=1e-30, steps=1))  # the model does not move
        theta = trainer.start(SEEDS[:2])
        slots = Slots.stack([np.array([2, 0]), np.array([1])])
        oort = silent(Oort(m=2))
        updates = trainer.work(theta, slots, oort, Draws(SEEDS[:2], 0))
        losses = trainer.report(oort.needs, updates)["work_losses"]
        expected = client_losses(trainer, theta)[slots.run, slots.client]
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        costs = trainer.charge(oort, slots, np.ones(3), Draws(SEEDS[:2], 0))
        assert costs["observation_bits"].tolist() == [64, 32]
        assert costs["model_bits"].tolist() == [64 * 59, 32 * 59]
        assert costs["gradients"].tolist() == [12 + 7, 3]
        assert trainer.report(MD(m=2).needs, updates) == {}

    def test_losses_of_several_steps_are_their_root_mean_square(self):
        slots, squares = Slots.stack([np.array([2])]), [0.0]
        for count in (1, 2, 3):  # the first steps are the same
            trainer = learner(LocalWork(batch=4, step=0.1, steps=count))
            trainer.work(trainer.start(SEEDS[:1]), slots, silent(MD(m=1)), Draws(SEEDS[:1], 0))
            squares.append(count * float(trainer.work_losses[0]) ** 2)
        losses = np.sqrt(np.diff(squares))
        assert trainer.training_costs["gradients"].tolist() == [3 * 4]
        expected = trainer.training_costs["train_loss"][0]
        np.testing.assert_allclose(losses.mean(), expected, rtol=1e-6)

    def test_scale_is_a_factor_on_a_slots_step(self):
        trainer = learner(LocalWork(batch=4, step=0.1, steps=1))
        theta = trainer.start(SEEDS[:1])
        slots = Slots.stack([np.array([2, 0])])
        updates, scaled = (
            trainer.work(theta, changed, silent(MD(m=2)), Draws(SEEDS[:1], 0))
            for changed in (slots, replace(slots, scale=np.array([2.0, 1.0])))
        )
        torch.testing.assert_close(scaled[0], 2 * updates[0], rtol=1e-3, atol=1e-7)
        assert torch.equal(scaled[1], updates[1])

    def test_a_round_without_clients_changes_nothing(self):
        trainer = learner()
        theta = trainer.start(SEEDS[:2])
        nobody = Slots.stack([np.empty(0, np.int64)] * 2)
        updates = trainer.work(theta, nobody, silent(MD(m=3)), Draws(SEEDS[:2], 0))
        assert torch.equal(trainer.advance(theta, updates, nobody, np.empty(0)), theta)
        costs = trainer.charge(silent(MD(m=3)), nobody, np.empty(0), Draws(SEEDS[:2], 0))
        assert not costs["reports"].any()


class TestRecords:
    def test_the_full_update_is_that_of_a_round_of_all_clients(self):
        trainer, all_clients = learner(full_update=2, server_step=0.5), learner()
        theta, rng = trainer.start(SEEDS), Draws(SEEDS, 4)
        slots, omega = DRAWN_TWICE, np.full(len(DRAWN_TWICE), 0.3)
        updates = trainer.work(theta, slots, silent(MD(m=3)), rng)
        trainer.advance(theta, updates, slots, omega)
        result = trainer.charge(silent(MD(m=3)), slots, omega, rng)
        all_slots = Slots.stack([np.arange(5)] * 3)
        full = (
            all_clients.work(theta, all_slots, silent(MD(m=3)), rng)
            .double()
            .numpy()
            .reshape(3, 5, -1)
        )
        for run in range(3):
            step = 0.3 * updates.double().numpy()[slots.run == run].sum(0)
            full_step = trainer.p @ full[run]
            error = ((step - full_step) ** 2).sum()
            assert result["update_error"][run] == pytest.approx(error, rel=1e-4)
            assert result["update_square"][run] == pytest.approx((full_step**2).sum(), rel=1e-5)
            cosine = step @ full_step / np.linalg.norm(step) / np.linalg.norm(full_step)
            assert result["update_cosine"][run] == pytest.approx(cosine, rel=1e-4)
        other_round = trainer.charge(silent(MD(m=3)), slots, omega, Draws(SEEDS, 3))
        assert not {"update_error", "met"} & other_round.keys()

    def test_participation_counts_used_updates(self):
        trainer = learner(participation=Participation(evenness=True))
        slots, omega = Slots.stack([np.array([2, 0, 2, 1])]), np.array([0.5, 0.0, 0.5, 0.1])
        trainer.work(trainer.start(SEEDS[:1]), slots, silent(MD(m=4)), Draws(SEEDS[:1], 0))
        result = trainer.charge(silent(MD(m=4)), slots, omega, Draws(SEEDS[:1], 0))
        assert trainer.participation.rounds.tolist() == [[0, 1, 1, 0, 0]]
        assert result["met"].tolist() == [0.4]
