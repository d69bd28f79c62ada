"""Cohorts for other frameworks have the clients and weights of our own loop."""

import numpy as np
import pytest
from tests.helpers.small_network import SIZES
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
    with pytest.raises(fs.InputError, match=r"updates: shape \(1, 59\); must be a row for each of"):
        cohort.weigh(np.ones((1, 59), np.float32))
