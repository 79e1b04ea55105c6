"""An LSTM's attention to the layers of many runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from plap.kernels.fused.calling import compiled_for


class Weights(NamedTuple):
    """Of the two directions of R LSTMs: first all that read forwards, then all that read backwards."""

    inputs: Tensor
    """[2 R, C, 4 U], gates in PyTorch's order: i, f, g, o."""
    states: Tensor
    """[2 R, U, 4 U]."""
    bias: Tensor
    """[2 R, 1, 4 U]."""
    attention: Tensor
    """[2 R, U, 1], of the score of a layer."""


def attended(layers: Sequence[Tensor], weights: Weights) -> Tensor:
    """The mean of the layers [R, N, C] by the softmax of the LSTMs' scores, as PyG's ``JumpingKnowledge``.

    The bias of the score is left out: no softmax depends on it.
    """
    runs, nodes, channels = layers[0].shape
    # one matrix for the inputs, the states and the bias, so that the gates are a single product
    matrix = torch.cat([weights.inputs, weights.bias, weights.states], 1).unflatten(2, (4, -1))
    i, f, g, o = matrix.unbind(2)
    matrix = torch.cat([i, 2 * g, o, f], 2)
    at_first = matrix[:, : channels + 1, : 3 * i.shape[2]]
    one = layers[0].new_ones(2 * runs, nodes, 1)
    output, state = None, None
    forwards, backwards = [], []
    for first, last in zip(layers, reversed(layers), strict=True):
        given = torch.cat([first, last])
        if output is None:
            gates = torch.bmm(torch.cat([given, one], 2), at_first)
        else:
            gates = torch.bmm(torch.cat([given, one, output], 2), matrix)
        output, state = cell(gates, state)
        scores = torch.bmm(output, weights.attention)
        forwards.append(scores[:runs])
        backwards.append(scores[runs:])
    scores = torch.cat(forwards, 2) + torch.cat(backwards[::-1], 2)
    shares = scores.softmax(2).unsqueeze(3).unbind(2)
    total = shares[0] * layers[0]
    for share, layer in zip(shares[1:], layers[1:], strict=True):
        total = torch.addcmul(total, share, layer)
    return total


def cell(gates: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """Output and state of an LSTM's cell, [B, N, U] each.

    Parameters
    ----------
    gates : Tensor, shape [B, N, 4 U], or [B, N, 3 U] without a state
        i, g, o and f before their sigmoids, g doubled: tanh(g) = 2 σ(2 g) − 1, so that one sigmoid of all
        gates does. Without a state nothing is forgotten, and there is no f.
    state : Tensor, shape [B, N, U], optional
        The state before; by default 0.

    Examples
    --------
    >>> output, state = cell(torch.zeros(1, 1, 32), torch.ones(1, 1, 8))
    >>> state[0, 0, 0], output[0, 0, 0]
    (tensor(0.5000), tensor(0.2311))
    """
    units = gates.shape[2] // (3 if state is None else 4)
    if compiled_for(gates.device) and units % _loops().BLOCK == 0:
        output, after = _Cell.apply(gates, state)  # type: ignore[no-untyped-call]
        return output, after
    i, g, o, *f = gates.sigmoid().split(units, 2)
    after = i * (2 * g - 1)
    if state is not None:
        after = torch.addcmul(after, f[0], state)
    return o * after.tanh(), after


class _Cell(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        units = gates.shape[2] // (3 if state is None else 4)
        shares = gates.sigmoid().contiguous()
        before = None if state is None else state.contiguous()
        after, half, output = (gates.new_empty(*gates.shape[:2], units) for _ in range(3))
        _run("state", after, shares, before, after, half)
        half.sigmoid_()
        _run("output", after, shares, before, half, output)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(shares, before, half)
        return output, after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_output: Tensor | None, of_after: Tensor | None) -> tuple[Tensor, Tensor | None]:
        shares, before, half = ctx.saved_tensors
        given = [None if part is None else part.contiguous() for part in (of_output, of_after)]
        of_gates = torch.empty_like(shares)
        of_before = None if before is None else torch.empty_like(before)
        _run("slopes", half, shares, before, half, *given, of_gates, of_before)
        return of_gates, of_before


def _run(step: str, like: Tensor, *arrays: Tensor | None) -> None:
    addresses = [0 if array is None else array.data_ptr() for array in arrays]
    rows, units = like.shape[0] * like.shape[1], like.shape[2]
    _loops().launch(step, like.dtype == torch.float64, rows, units, *addresses)


def _loops() -> Any:
    """The module of compiled loops, imported with the first call: Numba takes a second to import."""
    import plap.nn.lstm_loops as loops  # noqa: PLC0415

    return loops
