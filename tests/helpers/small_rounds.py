"""A few rounds of five small clients in our own loop, for comparison with other frameworks.

Local work is two passes over all of a client's samples, in which nothing is drawn: what differs
between frameworks is rounding alone.
"""

import numpy as np
import torch
from tests.helpers.small_network import SIZES, learner, samples
from torch import nn

import fedsampling as fs
from fedsampling.base.streams import Draws
from fedsampling.clients.failures import Reporting
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import play_round
from fedsampling.learning.training.observing import observations_for
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

ROUNDS, SEED, STEP, EPOCHS, SERVER_STEP = 4, 7, 0.3, 2, 0.5
SCHEMES = {
    "md": {"m": 3},  # some clients twice in a round
    "poisson": {"m": 2},  # any number of clients, perhaps none
    "available": {"available": 4, "m": 2, "report": "optimal"},  # weighs by norms
    "clustered_similarity": {"m": 2},  # remembers updates
    "power_of_choice": {"m": 2, "d": 4},  # asks for losses
}


def own_rounds(name, failing=-1):
    """Return each round's clients and weights, and the last model, of our own loop.

    A client that is `failing` never reports; its weight is zero.
    """
    work = LocalWork(epochs=EPOCHS, batch=1000, step=STEP)
    reports = np.tile(np.arange(len(SIZES)) != failing, (ROUNDS, 1))
    reporting = Reporting(np.zeros(len(SIZES)), trace=reports)
    ours = learner(work, server_step=SERVER_STEP, reporting=reporting)
    setup = Setup(SIZES, ours.p, dimension=ours.network.dimension)
    scheme = prepared(fs.scheme(name, **SCHEMES[name]), setup)
    ours.observations = observations_for(scheme, ours, 100, np.random.default_rng(0))
    clients, weights = [], []
    advance = ours.advance

    def noted(theta, updates, slots, omega, *rest):
        clients.append(ours.selected.client.tolist())
        every = np.zeros(len(clients[-1]))
        every[ours.outcome.reported] = omega
        weights.append(every.tolist())
        return advance(theta, updates, slots, omega, *rest)

    ours.advance = noted
    theta, checked = ours.start(np.array([SEED])), Checked(scheme, 1, ours.finite)
    for t in range(ROUNDS):
        theta, _ = play_round(ours, checked, theta, Draws(np.array([SEED]), t))
    return clients, weights, theta[0].numpy()


def noting(cohort, clients, weights):
    """Record the cohorts of a framework from now on."""
    select, weigh = cohort.select, cohort.weigh

    def noted_select(*arguments, **keywords):
        clients.append(select(*arguments, **keywords))
        return clients[-1]

    def noted_weigh(*arguments):
        omega = weigh(*arguments)
        weights.append(omega.tolist())
        return omega

    cohort.select, cohort.weigh = noted_select, noted_weigh


def check_rounds(result, name, failing=-1):
    """Assert that clients, weights and the last model agree with our own loop."""
    clients, weights, theta = own_rounds(name, failing)
    assert result[0] == clients, name
    for omega, expected in zip(result[1], weights, strict=True):
        np.testing.assert_allclose(omega, expected, rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(result[2], theta, atol=2e-6, err_msg=name)


def first_model():
    """Return the network as a module, with the first parameters of our own loop."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))
    theta = learner(LocalWork(epochs=1, batch=1, step=STEP)).start(np.array([SEED]))
    nn.utils.vector_to_parameters(theta[0], model.parameters())
    return model


def descend(model, client):
    """A client's local work."""
    x, y = samples(client)
    optimiser = torch.optim.SGD(model.parameters(), lr=STEP)
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()


def loss(model, client):
    """A client's training loss."""
    x, y = samples(client)
    with torch.no_grad():
        return float(nn.functional.cross_entropy(model(x), y))
