"""A user's module trains as in a loop over clients."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import fedsampling as fs

STEP, STEPS, BATCH = 0.1, 3, 100  # a batch is all of a client's data, so that no draw matters
SIZES = [6, 9, 12]


class Cnn(nn.Module):
    """A convolution with GroupNorm."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4)
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.norm(self.layer(x[:, None])).relu().mean((2, 3)))


class Recurrent(nn.Module):
    """An LSTM over symbols."""

    def __init__(self):
        super().__init__()
        self.symbols, self.layer = nn.Embedding(3, 4), nn.LSTM(4, 5, batch_first=True)
        self.last = nn.Linear(5, 3)

    def forward(self, x):
        return self.last(self.layer(self.symbols(x))[0][:, -1])


class Transformer(nn.Module):
    """A transformer block over symbols."""

    def __init__(self):
        super().__init__()
        self.symbols = nn.Embedding(3, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.layer(self.symbols(x)).mean(1))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(25, 8), nn.Tanh(), nn.Linear(8, 3))


def clients(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(27, 5, 5))
    if kind == "symbols":
        x = rng.integers(0, 3, size=(27, 6))
    y = np.arange(27) % 3
    owner = np.repeat(np.arange(3), SIZES)
    return fs.federated(x, y, clients=owner, x_test=x, y_test=y, tokens=kind == "symbols")


def by_hand(module, data, rounds, loss=F.cross_entropy):
    """Train all clients one after the other, average, and return the training loss by round."""
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    theta = {key: value.detach().clone() for key, value in module.named_parameters()}
    values = []
    for _ in range(rounds + 1):
        module.load_state_dict(theta)
        total, moved = 0.0, {key: torch.zeros_like(value) for key, value in theta.items()}
        for k, p in enumerate(data.p):
            part = slice(data.start[k], data.start[k + 1])
            module.load_state_dict(theta)
            total += p * float(loss(module(x[part]), y[part]).mean().detach())
            optimizer = torch.optim.SGD(module.parameters(), lr=STEP)
            for _ in range(STEPS):
                optimizer.zero_grad()
                loss(module(x[part]), y[part]).mean().backward()
                optimizer.step()
            for key, value in module.named_parameters():
                moved[key] += p * (value.detach() - theta[key])
        values.append(total)
        theta = {key: value + moved[key] for key, value in theta.items()}
    return values


WORK = {"steps": STEPS, "batch": BATCH, "step": STEP, "rounds": 3}


def trained(module, data, **settings):
    history = fs.train(data, "full", model=module, **WORK, **settings)
    rows = history[(history["metric"] == "loss") & (history["seed"] == 0)]
    return [*rows["value"]]


@pytest.mark.parametrize(
    ("make", "kind", "stacks"),
    [
        (mlp, "numbers", True),
        (Cnn, "numbers", True),
        (Recurrent, "symbols", False),
        (Transformer, "symbols", True),
    ],
)
def test_training_agrees_with_a_loop_over_clients(make, kind, stacks):
    torch.manual_seed(0)
    module, data = make(), clients(kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        losses = trained(module, data)
    np.testing.assert_allclose(losses, by_hand(module, data, 3), rtol=2e-5)
    messages = [str(warning.message) for warning in caught]
    assert sum("one after the other" in message for message in messages) == (0 if stacks else 1)


def test_users_losses_are_minimised():
    def smooth(outputs, targets):
        return F.cross_entropy(outputs, targets, reduction="none", label_smoothing=0.2)

    torch.manual_seed(0)
    module, data = mlp(), clients("numbers")
    losses = trained(module, data, loss=smooth)
    np.testing.assert_allclose(losses, by_hand(module, data, 3, smooth), rtol=2e-5)


def test_a_function_draws_a_model_for_each_seed_and_a_module_is_shared():
    def first(model):
        history = fs.train(clients("numbers"), "full", model=model, seeds=3, **WORK)
        at = (history["metric"] == "loss") & (history["at"] == 0)
        return history[at]["value"].to_numpy()

    assert len({*first(mlp).round(9)}) == 3
    np.testing.assert_array_equal(first(mlp), first(mlp))
    assert len({*first(mlp()).round(9)}) == 1


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (nn.BatchNorm1d(3), "model: Sequential: 1 is BatchNorm1d, whose running statistics belong"),
        (nn.Dropout(0.5), "model: Sequential: 1 has dropout with rate 0.5 from a generator that"),
        (nn.Linear(25, 4), "model: Sequential returns (2, 4) for 2 samples; must be (2, 3), one"),
        (nn.Linear(7, 3), "model: Sequential fails on samples of shape (5, 5): RuntimeError: mat1"),
        (lambda: 5, "model: int is invalid; must be a torch.nn.Module"),
        (
            lambda size: nn.Linear(size, 3),
            "model: <lambda>() is incomplete (missing a required argument: 'size'); use a function",
        ),
    ],
)
def test_an_invalid_module_is_one_line(model, line):
    if isinstance(model, nn.Module):
        model = nn.Sequential(nn.Flatten(), model)
    with pytest.raises(fs.InputError) as error:
        fs.train(clients("numbers"), "full", model=model, **WORK)
    assert [text[: len(line)] for text in error.value.lines] == [line]


def test_a_loss_must_be_one_number_per_sample():
    with pytest.raises(
        fs.InputError, match=r"^loss: it gives shape \(\) for 27 samples; must be one"
    ):
        fs.train(clients("numbers"), "full", model=mlp(), loss=nn.CrossEntropyLoss(), **WORK)
