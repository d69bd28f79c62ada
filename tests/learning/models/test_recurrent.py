from itertools import chain

import pytest
import torch
from torch import nn

from fedsampling.learning.models.recurrent_layers import lstm_layer
from fedsampling.learning.models.settings import Gru, LeafLstm, Lstm

SLOTS, BATCH, SYMBOLS = 3, 5, 30


class Reader(nn.Module):
    """Embedding, recurrent layers, and a dense layer on the last or on every step."""

    def __init__(self, kind, embedding, hidden, every_step):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, embedding)
        self.layers = kind(embedding, hidden, 2, batch_first=True)
        self.head = nn.Linear(hidden, SYMBOLS)
        self.every_step = every_step

    def forward(self, x):
        h = self.layers(self.embedding(x))[0]
        return self.head(h if self.every_step else h[:, -1])


class BasicLstm(nn.Module):
    """TensorFlow's BasicLSTMCell, step by step: one bias, one more in the forget gate."""

    def __init__(self, embedding, hidden):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, embedding)
        self.inner = nn.ParameterList()
        for inputs in (embedding, hidden):
            for shape in ((4 * hidden, inputs), (4 * hidden, hidden), (4 * hidden,)):
                self.inner.append(0.1 * torch.randn(shape))
        self.head = nn.Linear(hidden, SYMBOLS)

    def forward(self, x):
        sequence = list(self.embedding(x).unbind(1))
        for layer in range(2):
            w_x, w_h, b = self.inner[3 * layer : 3 * layer + 3]
            h = c = torch.zeros(len(x), w_h.shape[1])
            for t, x_t in enumerate(sequence):
                i, f, g, o = (x_t @ w_x.T + h @ w_h.T + b).chunk(4, -1)
                c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                sequence[t] = h
        return self.head(h)


@pytest.mark.parametrize(
    ("record", "module"),
    [
        (Lstm(), lambda: Reader(nn.LSTM, 8, 100, every_step=False)),
        (LeafLstm(hidden=20), lambda: BasicLstm(8, 20)),
        (Gru(embedding=20, hidden=20), lambda: Reader(nn.GRU, 20, 20, every_step=True)),
        (Gru(embedding=256, hidden=256), lambda: Reader(nn.GRU, 256, 256, every_step=True)),
    ],
    ids=["lstm", "leaf_lstm", "gru", "wide gru"],
)
@pytest.mark.parametrize("steps", [1, 4, 9])
def test_networks_agree_with_torch_or_tensorflows_cells(agree, record, module, steps):
    torch.manual_seed(0)
    modules = [module() for _ in range(SLOTS)]
    rng = torch.Generator().manual_seed(4)
    symbols = torch.randint(SYMBOLS, (SLOTS, BATCH, steps), generator=rng)
    agree(record.build((steps,), SYMBOLS), modules, symbols, symbols)


@pytest.mark.parametrize("steps", [1, 4, 9])
def test_the_lstm_of_gpus_agrees_with_torch_in_double_precision(steps):
    torch.manual_seed(0)
    modules = [nn.LSTM(6, 11).double() for _ in range(SLOTS)]
    x = torch.randn(SLOTS, steps, BATCH, 6, dtype=torch.float64, requires_grad=True)
    parameters = [list(module.parameters()) for module in modules]
    stacked = [torch.stack(slots) for slots in zip(*parameters, strict=True)]
    h = lstm_layer(x, *stacked[:2], stacked[2] + stacked[3])
    expected = torch.stack([module(slot)[0] for module, slot in zip(modules, x, strict=True)])
    torch.testing.assert_close(h, expected)
    weight, inputs = torch.randn_like(h), [x, *chain(*parameters)]
    result, by_torch = (torch.autograd.grad((weight * z).sum(), inputs) for z in (h, expected))
    torch.testing.assert_close(result, by_torch)
