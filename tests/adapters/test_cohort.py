"""Cohorts for other frameworks have the clients and weights of our own loop."""

import numpy as np
import pytest
from tests.helpers.small_network import SIZES, learner
from tests.helpers.small_rounds import (
    ROUNDS,
    SCHEMES,
    SEED,
    SERVER_STEP,
    check_rounds,
    descend,
    first_model,
    loss,
)
from tests.shared import line_of
from torch import nn

import fedsampling as fs
from fedsampling.adapters.cohort import Cohort
from fedsampling.base.streams import Draws
from fedsampling.clients.failures import Reporting
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import play_round
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup


def play_with_failures(scheme, reports):
    """Return clients, weights, updates and mini-batch losses of each round of our own loop."""
    work = LocalWork(epochs=1, batch=1000, step=0.3)
    reporting = Reporting(np.zeros(len(SIZES)), trace=reports)
    ours, rounds = learner(work, reporting=reporting), []
    ready = prepared(scheme, Setup(SIZES, ours.p, dimension=ours.network.dimension))
    advance = ours.advance

    def noted(theta, updates, slots, omega, *rest):
        clients, reported = ours.selected.client, ours.outcome.reported
        weights, rows, losses = np.zeros(len(clients)), np.zeros((len(clients), 59)), None
        weights[reported], rows[reported] = omega, updates
        if "work_losses" in ready.needs:
            losses = np.zeros(len(clients))
            losses[reported] = ours.work_losses
        rounds.append((clients.tolist(), weights, rows.astype(np.float32), losses))
        return advance(theta, updates, slots, omega, *rest)

    ours.advance = noted
    theta, checked = ours.start(np.array([SEED])), Checked(ready, 1, ours.finite)
    for t in range(len(reports)):
        theta, _ = play_round(ours, checked, theta, Draws(np.array([SEED]), t))
    return rounds


def flat(model):
    return nn.utils.parameters_to_vector(model.parameters()).detach()


@pytest.mark.parametrize("name", SCHEMES)
def test_clients_and_weights_are_those_of_our_own_loop(name):
    cohort = Cohort(fs.scheme(name, **SCHEMES[name]), SIZES, 59, SEED)
    model = first_model()
    clients, weights = [], []
    for t in range(ROUNDS):
        theta = flat(model).clone()
        clients.append(cohort.select(t, losses=[loss(model, k) for k in range(len(SIZES))]))
        updates = np.zeros((len(clients[-1]), 59), np.float32)
        for update, client in zip(updates, clients[-1], strict=True):
            nn.utils.vector_to_parameters(theta.clone(), model.parameters())
            descend(model, client)
            update[:] = flat(model) - theta
        omega = cohort.weigh(updates)
        weights.append(omega.tolist())
        moved = theta.numpy() + SERVER_STEP * omega.astype(np.float32) @ updates
        nn.utils.vector_to_parameters(theta.new_tensor(moved), model.parameters())
    check_rounds((clients, weights, flat(model)), name)


def test_failures_are_those_of_a_trace_in_our_own_loop():
    rng = np.random.default_rng(0)
    reports = rng.random((6, len(SIZES))) < 0.7
    for name in ("active_fl", "clustered_similarity", "osmd"):  # each remembers something
        cohort = Cohort(fs.scheme(name, m=3), SIZES, 59, SEED)
        ours = play_with_failures(fs.scheme(name, m=3), reports)
        for t, (clients, weights, updates, work_losses) in enumerate(ours):
            assert cohort.select(t) == clients, name
            omega = cohort.weigh(updates, work_losses, reports[t, clients])
            np.testing.assert_allclose(omega, weights, err_msg=name)


def test_a_client_that_is_away_is_not_selected():
    cohort = Cohort(fs.scheme("md", m=3), SIZES, 59)
    selected = [set(cohort.select(t, offered=[0, 3])) for t in range(20)]
    assert set().union(*selected) == {0, 3}


SCALED = {"name": "available", "available": 4, "m": 2, "report": "full", "scale": 0.5}


@pytest.mark.parametrize(
    ("scheme", "settings", "line"),
    [
        ({"name": "divfl", "m": 2}, {}, "scheme: divfl needs gradients, which other frameworks'"),
        ({"name": "tifl", "m": 2}, {}, "sampler.name: tifl needs the clients' delays, which are"),
        ({"name": "power_of_choice", "m": 2, "d": 3}, {}, "losses: power_of_choice needs them;"),
        ({"name": "clustered_size", "m": 2}, {"offered": [1, 2]}, "scheme: clustered_size requ"),
        (SCALED, {}, "scheme: available scales the clients' steps, which other frameworks do not"),
        ({"name": "mifa", "m": 2}, {}, "scheme: mifa adds remembered updates"),
    ],
)
def test_an_invalid_module_is_one_line(scheme, settings, line):
    result = line_of(lambda: Cohort(fs.scheme(**scheme), SIZES, 59).select(0, **settings))
    assert result.startswith(line)


@pytest.mark.parametrize("sizes", [[-1, 2], [1.5, 2], [np.nan, 1], [1e300, 1], [0, 0], [[1, 2]]])
def test_numbers_of_samples_are_counts(sizes):
    with pytest.raises(fs.InputError, match="n_samples: must be a number of samples for each cl"):
        Cohort(fs.scheme("md", m=2), sizes, 59)


def test_reports_have_a_row_for_each_client():
    cohort = Cohort(fs.scheme("power_of_choice", m=2, d=3), SIZES, 59)
    for losses in (np.ones(4), np.ones((5, 1)), ["1"] * 5):
        with pytest.raises(fs.InputError, match="losses: "):
            cohort.select(0, losses=losses)
    cohort.select(0, losses=np.ones(5))
    for shape in ((1, 59), (2, 60)):
        with pytest.raises(fs.InputError, match=r"updates: shape \(., ..\); must be \(2, 59\)"):
            cohort.weigh(np.ones(shape, np.float32))


@pytest.mark.parametrize("offered", [[], [-1, 0], [5, 0], [0, 0, 1], [True] * 5, [0.0, 1.0]])
def test_available_clients_are_different_indices(offered):
    with pytest.raises(fs.InputError, match="offered: must be different integers in 0…4, at least"):
        Cohort(fs.scheme("md", m=2), SIZES, 59).select(0, offered=offered)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"labels": [0, 1]}, r"labels: shape \(2,\); must be \(5,\)"),
        ({"labels": ["a"] * 5}, "labels: contains"),
        ({"labels": [0.5] * 5}, "labels: must be an integer"),
        ({"delays": [1, 2, 3]}, r"delays: shape \(3,\); must be \(5,\)"),
        ({"delays": [1, 2, 3, 4, np.nan]}, "delays: must be finite"),
        ({"delays": [1, 2, 3, 4, -1]}, "delays: must be finite"),
        *(({"seed": seed}, "seed: .* is invalid") for seed in (-1, 1.7, "3", True, 2**32, [1, 2])),
    ],
)
def test_arguments_are_checked_as_those_of_train(settings, line):
    with pytest.raises(fs.InputError, match=line):
        Cohort(fs.scheme("md", m=2), SIZES, 59, **settings)
