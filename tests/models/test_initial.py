from math import sqrt

import numpy as np
import pytest
from pydantic import TypeAdapter

from fedsampling.models.registry import build
from fedsampling.settings_models import NetworkModel

# Half-widths of the uniform laws, from the fans: PyTorch ±1/√fan-in (recurrent: ±1/√hidden), Keras
# and TensorFlow ±√(6/(fan-in + fan-out)), of LEAF's cells with inputs and states as one fan-in.
UNIFORM = {
    "mlp": {"hidden.weight": 1 / 28, "hidden.bias": 1 / 28, "head.weight": 1 / sqrt(50)},
    "cifar_cnn": {"conv1.weight": 1 / sqrt(27), "conv3.weight": 1 / 24, "dense.weight": 1 / 32},
    "convnet": {"conv2.weight": 1 / sqrt(500), "head.weight": 1 / sqrt(500)},
    "simple_cnn": {
        "conv1.weight": sqrt(6 / (25 + 25 * 32)),
        "dense.weight": sqrt(6 / (3136 + 512)),
        "head.weight": sqrt(6 / 522),
    },
    "leaf_cnn": {"dense.weight": sqrt(6 / (3136 + 2048))},
    "cifar100_cnn": {"conv4.weight": sqrt(6 / (9 * 256)), "dense1.weight": sqrt(6 / 5120)},
    "lstm": {"layer1.w_x": 0.1, "layer2.w_h": 0.1, "layer2.b_h": 0.1, "head.weight": 0.1},
    "leaf_lstm": {
        "embedding.weight": sqrt(6 / 88),
        "layer1.w_x": sqrt(6 / (264 + 1024)),
        "layer1.w_h": sqrt(6 / (264 + 1024)),
        "layer2.w_x": sqrt(6 / (512 + 1024)),
    },
    "gru": {"embedding.weight": 0.05, "layer1.w_x": sqrt(6 / 1024)},
}
ZERO = {
    "simple_cnn": ["conv1.bias", "dense.bias", "head.bias"],
    "cifar100_cnn": ["conv6.bias", "dense2.bias"],
    "leaf_lstm": ["layer1.b_x", "layer2.b_x", "head.bias"],
    "gru": ["layer1.b_x", "layer2.b_h", "head.bias"],
}
SAMPLES = {
    "mlp": ((28, 28), 10),
    "convnet": ((28, 28), 10),
    "simple_cnn": ((28, 28), 10),
    "leaf_cnn": ((28, 28), 62),
    "cifar_cnn": ((32, 32, 3), 10),
    "cifar100_cnn": ((32, 32, 3), 100),
    "lstm": ((80,), 100),
    "leaf_lstm": ((80,), 80),
    "gru": ((5,), 86),
}


@pytest.fixture(scope="module")
def drawn():
    records = TypeAdapter(NetworkModel)
    return {
        name: build(records.validate_python({"name": name}), *given).draw(np.random.default_rng(0))
        for name, given in SAMPLES.items()
    }


@pytest.mark.parametrize(("name", "laws"), UNIFORM.items())
def test_uniform_laws_have_their_bounds_and_fill_them(drawn, name, laws):
    for parameter, bound in laws.items():
        values = drawn[name][parameter].ravel()
        assert np.abs(values).max() <= bound
        # The largest of n falls below this with probability 1e-6.
        assert np.abs(values).max() >= bound * 1e-6 ** (1 / values.size)
        # Six standard errors of the variance of a uniform law.
        assert values.var() == pytest.approx(bound**2 / 3, rel=6 * sqrt(0.8 / values.size))


@pytest.mark.parametrize(("name", "parameters"), ZERO.items())
def test_biases_of_keras_and_tensorflow_start_at_zero(drawn, name, parameters):
    for parameter in parameters:
        assert not drawn[name][parameter].any()


def test_recurrent_weights_of_the_gru_are_orthonormal(drawn):
    for layer in ("layer1", "layer2"):
        w_h = drawn["gru"][f"{layer}.w_h"]
        assert w_h.shape == (768, 256)
        assert w_h.T @ w_h == pytest.approx(np.eye(256), abs=1e-12)


def test_embeddings_of_torch_are_standard_normal(drawn):
    values = drawn["lstm"]["embedding.weight"]
    assert values.mean() == pytest.approx(0, abs=5 / sqrt(values.size))
    assert values.var() == pytest.approx(1, abs=5 * sqrt(2 / values.size))
    assert np.abs(values).max() > 2  # uniform of that variance would end at √3
