"""Networks for sequences of characters: LSTM and GRU.

Samples are symbols [slots, batch, steps]; the target is the next symbol, so there are as many
classes as symbols.  Inside, arrays are ordered by slot, then by step: [slots, steps, batch,
features].

On a CPU, PyTorch's LSTM computes the layers slot by slot: it uses oneDNN's implementation of whole
LSTM layers, which takes two thirds of the time of the layers below.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from fedsampling.base.errors import InputError
from fedsampling.learning.model import Gru, LeafLstm, Lstm
from fedsampling.learning.models.layers import dense, labels
from fedsampling.learning.models.network import (
    Keep,
    Law,
    Network,
    Parameter,
    Parts,
    glorot,
    keras_layer,
    network,
    normal,
    orthogonal,
    torch_layer,
    uniform,
    zero,
)
from fedsampling.learning.models.products import add_product, gradient, multiply, prepared


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
    if x.device.type != "cpu":
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


# Recurrent layers over slots, each with explicit gradients.
#
# PyTorch's automatic differentiation would record every step of every gate.  Here a layer is one
# node: the inputs of several steps are multiplied at once, a step is one product and a few
# operations on all slots, and the gradients of the weights are one product over all steps.  Arrays
# are ordered by slot, then by step: [slots, steps, batch, features].  Initial states are zero.
# Second derivatives are not implemented.


_CHUNK = 4  # steps whose inputs are multiplied at once: efficient, and small enough for the cache
_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


def lstm_layer(x: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor) -> Tensor:
    """Run one layer of long short-term memory on x, shape (slots, steps, batch, inputs).

    i, f, o = σ(·) and g = tanh(·) of W_x x_t + W_h h_{t−1} + b, in the order i, f, g, o; c_t = f
    c_{t−1} + i g; h_t = o tanh(c_t). `bias` is the sum of PyTorch's two biases.
    """
    h: Tensor = _Lstm.apply(x, w_x, w_h, bias)  # type: ignore[no-untyped-call]
    return h


def gru_layer(x: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """Run one layer of gated recurrent units on x, shape (slots, steps, batch, inputs).

    With a = W_x x_t + b_x and u = W_h h_{t−1} + b_h, each in the order r, z, n: r, z = σ(a + u); n
    = tanh(a_n + r u_n); h_t = (1 − z) n + z h_{t−1}. This is PyTorch's definition, and Keras' with
    ``reset_after=True``, its default.
    """
    h: Tensor = _Gru.apply(x, w_x, w_h, b_x, b_h)  # type: ignore[no-untyped-call]
    return h


class _Lstm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor) -> Tensor:
        slots, steps, batch, _ = x.shape
        hidden = w_h.shape[2]
        gates = x.new_empty(slots, steps, batch, 4 * hidden)
        c, tanh_c, h = x.new_empty(3, slots, steps, batch, hidden).unbind()
        weights = prepared(w_h, batch)
        for t, a in enumerate(_inputs(x, w_x, bias)):
            if t > 0:
                a = add_product(h[:, t - 1], weights, a)
            _tanh(a[..., 2 * hidden : 3 * hidden], out=gates[:, t, :, 2 * hidden : 3 * hidden])
            for sigmoidal in _sigmoid_gates(hidden):
                torch.sigmoid(a[..., sigmoidal], out=gates[:, t, :, sigmoidal])
            i, f, g, o = gates[:, t].chunk(4, -1)
            torch.mul(i, g, out=c[:, t])
            if t > 0:
                c[:, t].addcmul_(f, c[:, t - 1])
            _tanh(c[:, t], out=tanh_c[:, t])
            torch.mul(o, tanh_c[:, t], out=h[:, t])
        ctx.save_for_backward(x, w_x, w_h, gates, c, tanh_c, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_h: Tensor) -> tuple[Tensor | None, ...]:
        x, w_x, w_h, gates, c, tanh_c, h = ctx.saved_tensors
        steps, batch, hidden = h.shape[1:]
        by_gates = torch.empty_like(gates)
        weights = prepared(w_h.transpose(1, 2), batch)
        dc = torch.zeros_like(c[:, 0])
        for t in reversed(range(steps)):
            now = by_gates[:, t]
            dh = (
                add_product(by_gates[:, t + 1], weights, by_h[:, t])
                if t + 1 < steps
                else by_h[:, t]
            )
            i, f, g, o = gates[:, t].chunk(4, -1)
            di, df, dg, do = now.chunk(4, -1)
            torch.mul(dh, tanh_c[:, t], out=do)
            by_tanh = dh * o
            dc += _tanh_backward(by_tanh, tanh_c[:, t], grad_input=by_tanh)
            torch.mul(dc, g, out=di)
            torch.mul(dc, c[:, t - 1] if t > 0 else torch.zeros_like(dc), out=df)
            _tanh_backward(dc * i, g, grad_input=dg)
            for sigmoidal in _sigmoid_gates(hidden):
                part = now[..., sigmoidal]
                _sigmoid_backward(part, gates[:, t, :, sigmoidal], grad_input=part)
            dc *= f
        by_w_h = gradient(by_gates[:, 1:].flatten(1, 2), h[:, :-1].flatten(1, 2))
        by_x, by_w_x, by_bias = _by_inputs(ctx, x, w_x, by_gates)
        return by_x, by_w_x, by_w_h, by_bias


class _Gru(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
        slots, steps, batch, _ = x.shape
        hidden = w_h.shape[2]
        r_and_z = slice(0, 2 * hidden)
        gates = x.new_empty(slots, steps, batch, 3 * hidden)
        u_n, h = x.new_empty(2, slots, steps, batch, hidden).unbind()
        weights = prepared(w_h, batch)
        bias = b_h[:, None].expand(-1, batch, -1).contiguous()
        before = x.new_zeros(slots, batch, hidden)
        for t, a in enumerate(_inputs(x, w_x, b_x)):
            u = add_product(before, weights, bias) if t > 0 else bias
            r, z, n = gates[:, t].chunk(3, -1)
            torch.sigmoid(a[..., r_and_z] + u[..., r_and_z], out=gates[:, t, :, r_and_z])
            u_n[:, t] = u[..., 2 * hidden :]
            _tanh(torch.addcmul(a[..., 2 * hidden :], r, u_n[:, t]), out=n)
            before = torch.lerp(n, before, z, out=h[:, t])
        ctx.save_for_backward(x, w_x, w_h, gates, u_n, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_h: Tensor) -> tuple[Tensor | None, ...]:
        x, w_x, w_h, gates, u_n, h = ctx.saved_tensors
        steps, batch, hidden = h.shape[1:]
        r_and_z = slice(0, 2 * hidden)
        by_u, by_n = torch.empty_like(gates), torch.empty_like(h)
        weights = prepared(w_h.transpose(1, 2), batch)
        carried = torch.zeros_like(h[:, 0])
        for t in reversed(range(steps)):
            dh = by_h[:, t] + carried
            if t + 1 < steps:
                dh = add_product(by_u[:, t + 1], weights, dh)
            before = h[:, t - 1] if t > 0 else torch.zeros_like(dh)
            r, z, n = gates[:, t].chunk(3, -1)
            dr, dz, du = by_u[:, t].chunk(3, -1)
            carried = dh * z
            dn = _tanh_backward(dh - carried, n, grad_input=by_n[:, t])
            torch.mul(dn, r, out=du)
            torch.mul(dn, u_n[:, t], out=dr)
            torch.mul(dh, before - n, out=dz)
            part = by_u[:, t, :, r_and_z]
            _sigmoid_backward(part, gates[:, t, :, r_and_z], grad_input=part)
        by_b_h = by_u.sum((1, 2))
        by_w_h = gradient(by_u[:, 1:].flatten(1, 2), h[:, :-1].flatten(1, 2))
        by_u[..., 2 * hidden :] = by_n  # the only part in which the gradients of a and u differ
        by_x, by_w_x, by_b_x = _by_inputs(ctx, x, w_x, by_u)
        return by_x, by_w_x, by_w_h, by_b_x, by_b_h


def _inputs(x: Tensor, w_x: Tensor, bias: Tensor) -> Iterator[Tensor]:
    # W_x x_t + b of each step, [slots, batch, gates].
    slots, steps, batch, _ = x.shape
    for t in range(0, steps, _CHUNK):
        a = multiply(x[:, t : t + _CHUNK].flatten(1, 2), w_x).add_(bias[:, None])
        yield from a.view(slots, -1, batch, a.shape[-1]).unbind(1)


def _by_inputs(
    ctx: Any, x: Tensor, w_x: Tensor, by_gates: Tensor
) -> tuple[Tensor | None, Tensor, Tensor]:
    rows = by_gates.flatten(1, 2)
    by_x = None
    if ctx.needs_input_grad[0]:
        by_x = multiply(rows, w_x.transpose(1, 2)).view(x.shape)
    return by_x, gradient(rows, x.flatten(1, 2)), rows.sum(1)


def _sigmoid_gates(hidden: int) -> tuple[slice, slice]:
    return slice(0, 2 * hidden), slice(3 * hidden, 4 * hidden)


def _tanh(a: Tensor, out: Tensor) -> Tensor:
    # tanh(a) = 2 σ(2a) − 1 takes a third of the time on a CPU, and is exact up to rounding of 1.
    return torch.sigmoid(torch.mul(a, 2, out=out), out=out).mul_(2).sub_(1)
