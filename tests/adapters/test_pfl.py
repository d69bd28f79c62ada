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
    own_rounds,
)
from tests.shared import line_of
from torch import nn

import fedsampling as fs

USERS = [f"user {number}" for number in range(len(SIZES))]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = first_model()

    def loss(self, x, y, is_eval=False):
        return nn.functional.cross_entropy(self.layers(x), y)

    def metrics(self, x, y):
        return {}


def dataset(user):
    from pfl.data.dataset import Dataset

    return Dataset([*samples(USERS.index(user))], user_id=user)


def new_cohorts(name, net, **changes):
    from fedsampling.adapters.pfl import SchemeCohorts

    return SchemeCohorts(
        fs.scheme(name, **SCHEMES[name] | changes),
        dataset,
        dict(zip(USERS, SIZES.tolist(), strict=True)),
        dimension=59,
        seed=SEED,
        losses=lambda: [loss(net.layers, client) for client in range(len(USERS))],
    )


def run(cohorts, net, rounds=ROUNDS, folder=None, before=(), forgotten=()):
    """Train with pfl; return the parameters.  `forgotten`: what is not passed to pfl."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.restore_training import RestoreTrainingCallback
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.model.pytorch import PyTorchModel

    algorithm = FederatedAveraging()
    model = PyTorchModel(net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=SERVER_STEP))
    saved = [algorithm, model, *([] if "state" in forgotten else [cohorts])]
    processors = [*before, *([] if "postprocessor" in forgotten else [cohorts])]
    algorithm.run(
        NNAlgorithmParams(rounds, 10**6, train_cohort_size=1, val_cohort_size=0),
        SimulatedBackend(
            cohorts,
            FederatedDataset(dataset, get_user_sampler("random", USERS)),
            postprocessors=processors,
        ),
        model,
        NNTrainHyperParams(
            local_num_epochs=EPOCHS, local_learning_rate=STEP, local_batch_size=None
        ),
        NNEvalHyperParams(local_batch_size=None),
        callbacks=[RestoreTrainingCallback(saved, str(folder))] if folder else [],
        send_metrics_to_platform=False,
    )
    return nn.utils.parameters_to_vector(net.parameters()).detach()


@pytest.fixture(autouse=True)
def pfl():
    return pytest.importorskip("pfl", reason="needs pfl: make test-adapters")


@pytest.mark.parametrize("name", SCHEMES)
def test_pfl_moves_the_model_as_our_own_loop_does(name):
    net = Net()
    cohorts = new_cohorts(name, net)
    clients, weights = [], []
    noting(cohorts._cohort, clients, weights)
    theta = run(cohorts, net)
    check_rounds((clients, weights, theta), name)


def test_a_stopped_training_resumes_with_the_samplers_state(tmp_path):
    net = Net()
    cohorts = new_cohorts("clustered_similarity", net)
    fails_in(cohorts, 2)
    with pytest.raises(TimeoutError):
        run(cohorts, net, folder=tmp_path)
    net = Net()
    cohorts = new_cohorts("clustered_similarity", net)
    clients, weights = [], []
    noting(cohorts._cohort, clients, weights)
    theta = run(cohorts, net, folder=tmp_path)
    expected_clients, _, expected = own_rounds("clustered_similarity")
    assert clients == expected_clients[2:]
    torch.testing.assert_close(theta, torch.from_numpy(expected), rtol=0, atol=2e-6)


def fails_in(cohorts, round):
    """Interrupt the training in a round."""
    select = cohorts._cohort.select

    def failing_select(t, **information):
        if t == round:
            raise TimeoutError
        return select(t, **information)

    cohorts._cohort.select = failing_select


def test_cohorts_that_pfl_does_not_save_are_one_line(tmp_path):
    net = Net()
    cohorts = new_cohorts("md", net)
    fails_in(cohorts, 2)
    with pytest.raises(TimeoutError):
        run(cohorts, net, folder=tmp_path, forgotten=["state"])
    resumed = new_cohorts("md", net)
    line = line_of(run, resumed, net, folder=tmp_path, forgotten=["state"])
    assert line.startswith("iteration 2: the sampler is only in round 0; to resume, pass the coh")


def test_cohorts_that_weigh_nothing_or_were_used_are_one_line():
    net = Net()
    cohorts = new_cohorts("poisson", net)
    line = line_of(run, cohorts, net, forgotten=["postprocessor"])
    assert line.startswith("postprocessors: the cohorts are missing")
    cohorts = new_cohorts("md", net)
    run(cohorts, net)
    assert line_of(run, cohorts, net).startswith("cohorts: used by another training")


def test_noise_is_divided_by_the_number_of_users():
    from pfl.privacy.gaussian_mechanism import GaussianMechanism
    from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism

    stds = {}
    for m in (1, 5):
        nets = Net(), Net()
        mechanism = CentrallyAppliedPrivacyMechanism(GaussianMechanism(1e6, 1e-6))
        theta = run(new_cohorts("md", nets[0], m=m), nets[0], rounds=1)
        noisy = run(new_cohorts("md", nets[1], m=m), nets[1], rounds=1, before=[mechanism])
        stds[m] = float((noisy - theta).std()) / SERVER_STEP
    for m, std in stds.items():
        assert std == pytest.approx(1 / m, rel=0.4)
