"""The cohort sampler in pfl-research's simulator agrees with our own loop."""

import pytest
import torch
from tests.helpers.small_network import SIZES, samples
from tests.helpers.small_rounds import (
    EPOCHS,
    ROUNDS,
    SCHEMES,
    SEED,
    SERVER_STEP,
    STEP,
    check_rounds,
    first_model,
    loss,
    noting,
)
from torch import nn

import fedsampling as fs


@pytest.mark.parametrize("name", SCHEMES)
def test_pfl_moves_the_model_as_our_own_loop_does(name):
    pytest.importorskip("pfl", reason="needs pfl: make test-adapters")
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.model.pytorch import PyTorchModel

    from fedsampling.adapters.pfl import SchemeCohorts

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = first_model()

        def loss(self, x, y, is_eval=False):
            return nn.functional.cross_entropy(self.layers(x), y)

        def metrics(self, x, y):
            return {}

    users = [f"user {number}" for number in range(len(SIZES))]
    net = Net()

    def dataset(user):
        return Dataset([*samples(users.index(user))], user_id=user)

    cohorts = SchemeCohorts(
        fs.scheme(name, **SCHEMES[name]),
        dataset,
        dict(zip(users, SIZES.tolist(), strict=True)),
        dimension=59,
        seed=SEED,
        losses=lambda: [loss(net.layers, client) for client in range(len(users))],
    )
    clients, weights = [], []
    noting(cohorts._cohort, clients, weights)
    FederatedAveraging().run(
        NNAlgorithmParams(ROUNDS, 10**6, train_cohort_size=1, val_cohort_size=0),
        SimulatedBackend(
            cohorts,
            FederatedDataset(dataset, get_user_sampler("random", users)),
            postprocessors=[cohorts],
        ),
        PyTorchModel(net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=SERVER_STEP)),
        NNTrainHyperParams(
            local_num_epochs=EPOCHS, local_learning_rate=STEP, local_batch_size=None
        ),
        NNEvalHyperParams(local_batch_size=None),
        send_metrics_to_platform=False,
    )
    theta = nn.utils.parameters_to_vector(net.parameters()).detach()
    check_rounds((clients, weights, theta), name)
