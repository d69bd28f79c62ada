import pytest
import torch
from torch import nn

from fedsampling.learning.models.model import Gru, LeafLstm, Lstm
from fedsampling.learning.models.networks.recurrent_layers import gru_layer, lstm_layer

SLOTS, BATCH, STEPS, SYMBOLS = 3, 5, 7, 30


class Reader(nn.Module):
    """Embedding, recurrent layers, and a dense layer on the last or on every step."""

    def __init__(self, kind, embedding, hidden, every):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, embedding)
        self.layers = kind(embedding, hidden, 2, batch_first=True)
        self.head = nn.Linear(hidden, SYMBOLS)
        self.every = every

    def forward(self, x):
        h = self.layers(self.embedding(x))[0]
        return self.head(h if self.every else h[:, -1])


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
            for t, given in enumerate(sequence):
                i, f, g, o = (given @ w_x.T + h @ w_h.T + b).chunk(4, -1)
                c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                sequence[t] = h
        return self.head(h)


def symbols():
    rng = torch.Generator().manual_seed(4)
    return torch.randint(SYMBOLS, (SLOTS, BATCH, STEPS), generator=rng)


def test_lstm_agrees_with_torch(agree):
    torch.manual_seed(0)
    modules = [Reader(nn.LSTM, 8, 100, every=False) for _ in range(SLOTS)]
    network = Lstm().build((STEPS,), SYMBOLS)
    agree(network, modules, symbols(), symbols())


def test_leaf_lstm_agrees_with_a_basic_lstm_cell(agree):
    torch.manual_seed(0)
    modules = [BasicLstm(8, 20) for _ in range(SLOTS)]
    network = LeafLstm(hidden=20).build((STEPS,), SYMBOLS)
    agree(network, modules, symbols(), symbols())


@pytest.mark.parametrize("width", [20, 256])
def test_gru_agrees_with_torch_at_every_step(agree, width):
    torch.manual_seed(0)
    modules = [Reader(nn.GRU, width, width, every=True) for _ in range(SLOTS)]
    record = Gru(embedding=width, hidden=width)
    agree(record.build((STEPS,), SYMBOLS), modules, symbols(), symbols())


@pytest.mark.parametrize("steps", [1, 4, 9])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_stacked_cells_agree_with_torch_in_double_precision(kind, steps):
    torch.manual_seed(0)
    modules = [getattr(nn, kind)(6, 11).double() for _ in range(SLOTS)]
    x = torch.randn(SLOTS, steps, BATCH, 6, dtype=torch.float64, requires_grad=True)
    theirs = list(zip(*(m.parameters() for m in modules), strict=True))
    own = [torch.stack([p.detach() for p in each]).requires_grad_() for each in theirs]
    w_x, w_h, b_x, b_h = own
    h = lstm_layer(x, w_x, w_h, b_x + b_h) if kind == "LSTM" else gru_layer(x, *own)
    weight = torch.randn_like(h)
    result = torch.autograd.grad((weight * h).sum(), (x, *own))

    expected = torch.stack([m(given)[0] for m, given in zip(modules, x, strict=True)])
    torch.testing.assert_close(h, expected)
    (by_x,) = torch.autograd.grad((weight * expected).sum(), x, retain_graph=True)
    (weight * expected).sum().backward()
    torch.testing.assert_close(result[0], by_x)
    for gradient, each in zip(result[1:], theirs, strict=True):
        torch.testing.assert_close(gradient, torch.stack([p.grad for p in each]))
