"""Networks for sequences of characters: LSTM and GRU.

Samples are symbols [slots, batch, steps]; the target is the next symbol, so there are as many
classes as symbols.  Inside, arrays are ordered by slot, then by step: [slots, steps, batch,
features].

On a CPU, PyTorch's LSTM computes the layers slot by slot: it uses oneDNN's implementation of whole
LSTM layers, which takes two thirds of the time of the layers below.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from fedsampling.base.errors import InputError
from fedsampling.learning.models.devices import at_once
from fedsampling.learning.models.dropout import Keep
from fedsampling.learning.models.initial import (
    Law,
    Parameter,
    glorot,
    keras_layer,
    normal,
    orthogonal,
    torch_layer,
    uniform,
    zero,
)
from fedsampling.learning.models.layers import dense, labels
from fedsampling.learning.models.network import Network, Parts, network
from fedsampling.learning.models.recurrent_layers import gru_layer, lstm_layer
from fedsampling.learning.models.settings import Gru, LeafLstm, Lstm


def lstm(record: Lstm, sample: tuple[int, ...], classes: int | None) -> Network:
    """Stacked LSTM that predicts the next symbol from the last step, initialised as by PyTorch.

    Each gate has two biases, drawn from U(±1/√hidden) like the weights; embeddings from N(0, 1).

    References: Fraboni et al. 2022, section 4 (two layers of 100, embedding of 8).
    """
    symbols = _symbols("lstm", sample, classes)
    bound = uniform(record.hidden**-0.5)
    parameters = {
        **_embedding(symbols, record.embedding, normal(1)),
        **_layers(record, 4, lambda inputs: (bound, bound), {"b_x": bound, "b_h": bound}),
        **torch_layer("head", symbols, record.hidden),
    }

    def body(w: Parts, x: Tensor, keep: Keep) -> Tensor:
        biases = [(w[f"{n}.b_x"], w[f"{n}.b_h"]) for n in _names(record.layers)]
        return _run_lstm(w, _embedded(w, x), biases)[:, -1]

    return network("lstm", parameters, body, lambda w, h: dense(w, "head", h))


def leaf_lstm(record: LeafLstm, sample: tuple[int, ...], classes: int | None) -> Network:
    """LEAF's StackedLSTM, which predicts the next symbol from the last step.

    Initialised as by TensorFlow: all matrices are drawn from Glorot's uniform distribution, with a
    cell's matrices as a single one.  Each gate has one bias, initially zero, plus a constant 1 in
    forget gates (BasicLSTMCell).

    References: Harshvardhan et al. 2025, section 7. Caldas et al., LEAF, 2018; sizes of its code.
    """
    symbols = _symbols("leaf_lstm", sample, classes)
    hidden = record.hidden
    parameters = {
        **_embedding(symbols, record.embedding, glorot(symbols, record.embedding)),
        **_layers(
            record, 4, lambda inputs: (glorot(inputs + hidden, 4 * hidden),) * 2, {"b_x": zero}
        ),
        **keras_layer("head", symbols, hidden),
    }

    def body(w: Parts, x: Tensor, keep: Keep) -> Tensor:
        h = _embedded(w, x)
        forget = h.new_zeros(len(h), 4, hidden)
        forget[:, 1] = 1
        biases = [(w[f"{name}.b_x"], forget.flatten(1)) for name in _names(record.layers)]
        return _run_lstm(w, h, biases)[:, -1]

    return network("leaf_lstm", parameters, body, lambda w, h: dense(w, "head", h))


def gru(record: Gru, sample: tuple[int, ...], classes: int | None) -> Network:
    """Stacked GRU that predicts the next symbol at every step, initialised as by Keras.

    Each gate has two biases, initially zero: 833,622 parameters require Keras'
    ``reset_after=True``.  Input weights are drawn from Glorot's uniform distribution, embeddings
    from U(±0.05); recurrent weights are orthogonal.

    References: Chen et al. 2022, section 5 (Shakespeare; sizes of the authors' code).
    """
    symbols = _symbols("gru", sample, classes)
    gates = 3 * record.hidden
    parameters = {
        **_embedding(symbols, record.embedding, uniform(0.05)),
        **_layers(
            record,
            3,
            lambda inputs: (glorot(inputs, gates), orthogonal),
            {"b_x": zero, "b_h": zero},
        ),
        **keras_layer("head", symbols, record.hidden),
    }

    def body(w: Parts, x: Tensor, keep: Keep) -> Tensor:
        h = _embedded(w, x)
        for name in _names(record.layers):
            h = gru_layer(h, *(w[f"{name}.{part}"] for part in ("w_x", "w_h", "b_x", "b_h")))
        return h.transpose(1, 2)

    return network("gru", parameters, body, lambda w, h: dense(w, "head", h))


def _symbols(name: str, sample: tuple[int, ...], classes: int | None) -> int:
    if len(sample) != 1:
        raise InputError(
            f"model.name: {name} requires sequences, but the dataset's samples have shape "
            f"{sample}; use another model or dataset"
        )
    return labels(name, classes)


def _embedding(symbols: int, width: int, law: Law) -> dict[str, Parameter]:
    return {"embedding.weight": Parameter((symbols, width), law)}


def _layers(
    record: Lstm | LeafLstm | Gru,
    gates: int,
    laws: Callable[[int], tuple[Law, Law]],
    biases: Mapping[str, Law],
) -> dict[str, Parameter]:
    # laws: distributions of a layer's input and state weights, as functions of the inputs' number.
    parameters, inputs, rows = {}, record.embedding, gates * record.hidden
    for name in _names(record.layers):
        of_inputs, of_states = laws(inputs)
        parameters[f"{name}.w_x"] = Parameter((rows, inputs), of_inputs)
        parameters[f"{name}.w_h"] = Parameter((rows, record.hidden), of_states)
        for bias, law in biases.items():
            parameters[f"{name}.{bias}"] = Parameter((rows,), law)
        inputs = record.hidden
    return parameters


def _names(layers: int) -> list[str]:
    return [f"layer{number}" for number in range(1, layers + 1)]


def _embedded(w: Parts, x: Tensor) -> Tensor:
    # [slots, batch, steps] to [slots, steps, batch, width], with one table of all slots.
    table = w["embedding.weight"]
    slots, symbols, _ = table.shape
    first = symbols * torch.arange(slots, device=x.device)
    return functional.embedding(x.transpose(1, 2) + first[:, None, None], table.flatten(0, 1))


def _run_lstm(w: Parts, x: Tensor, biases: list[tuple[Tensor, Tensor]]) -> Tensor:
    # [slots, steps, batch, inputs] to [slots, steps, batch, hidden].
    layers = [
        (w[f"{name}.w_x"], w[f"{name}.w_h"], *pair)
        for name, pair in zip(_names(len(biases)), biases, strict=True)
    ]
    if at_once(x.device):
        for w_x, w_h, b_x, b_h in layers:
            x = lstm_layer(x, w_x, w_h, b_x + b_h)
        return x
    start = x.new_zeros(len(layers), x.shape[2], layers[0][1].shape[2])
    training = torch.is_grad_enabled()
    weights = zip(*(part.unbind() for layer in layers for part in layer), strict=True)
    h = [
        torch.lstm(x_s, (start, start), w_s, True, len(layers), 0.0, training, False, False)[0]
        for x_s, w_s in zip(x.unbind(), weights, strict=True)
    ]
    return torch.stack(h)
