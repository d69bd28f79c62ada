"""Recurrent layers over slots, each with explicit gradients.

PyTorch's automatic differentiation would record every step of every gate.  Here a layer is one
node: the inputs of several steps are multiplied at once, a step is one product and a few
operations on all slots, and the gradients of the weights are one product over all steps.  Arrays
are ordered by slot, then by step: [slots, steps, batch, features].  Initial states are zero.
Second derivatives are not implemented.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fedsampling.learning.models.devices import at_once
from fedsampling.learning.models.products import add_product, gradient, multiply, prepared

_CHUNK = 4  # steps whose inputs a CPU multiplies at once: efficient, and they fit its cache
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
    chunk = steps if at_once(x.device) else _CHUNK
    for t in range(0, steps, chunk):
        a = multiply(x[:, t : t + chunk].flatten(1, 2), w_x).add_(bias[:, None])
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
    if at_once(a.device):
        return torch.tanh(a, out=out)
    # tanh(a) = 2 σ(2a) − 1 takes a third of the time on a CPU, and is exact up to rounding of 1.
    return torch.sigmoid(torch.mul(a, 2, out=out), out=out).mul_(2).sub_(1)
