"""Attention, weighted sums and edge lengths of many runs at once, without an array of edges × channels."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu, pad

from plap.calculus import log_norm
from plap.graph import Graph
from plap.kernels.fused.calling import compiled_for
from plap.memo import Memo

_SLOPE = 0.2
"""Of GAT's leaky ReLU where its argument is negative."""


class Neighbours(NamedTuple):
    """The neighbours of every node and the node itself, as rows of a symmetric pattern; int64."""

    indptr: Tensor
    indices: Tensor
    receivers: Tensor
    """The row of each entry."""
    reverse: Tensor
    """The position of entry (j, i) for each entry (i, j)."""


_NEIGHBOURS: Memo[Neighbours] = Memo()


_ALONE: Memo[Neighbours] = Memo()


def neighbours_alone(graph: Graph) -> Neighbours:
    """The stored entries of a graph, in its order; made once for each graph.

    Examples
    --------
    >>> import plap
    >>> neighbours_alone(plap.Graph.from_edges([(0, 1)])).reverse
    tensor([1, 0])
    """
    return _ALONE.get(
        graph,
        lambda: Neighbours(
            graph.indptr.long(), graph.indices.long(), graph.receivers(), graph.reverse_entries()
        ),
    )


def neighbours_and_self(graph: Graph) -> Neighbours:
    """Whom a node attends to; made once for each graph.

    Examples
    --------
    >>> import plap
    >>> neighbours_and_self(plap.Graph.from_edges([(0, 1)])).indices
    tensor([0, 1, 0, 1])
    """
    return _NEIGHBOURS.get(graph, lambda: _neighbours(graph))


def _neighbours(graph: Graph) -> Neighbours:
    count = graph.num_nodes
    nodes = torch.arange(count, device=graph.device)
    row, column = graph.receivers().long(), graph.indices.long()
    indptr = graph.indptr.long()
    if graph.num_self_loops:
        other = row != column
        loops_before = torch.cat([indptr.new_zeros(1), (~other).cumsum(0)])[indptr]
        row, column, indptr = row[other], column[other], indptr - loops_before
    row, column = torch.cat([row, nodes]), torch.cat([column, nodes])
    order = torch.argsort(row * count + column)
    row, column = row[order], column[order]
    indptr = indptr + torch.arange(count + 1, device=graph.device)
    return Neighbours(indptr, column, row, torch.argsort(column, stable=True))


def attend(neighbours: Neighbours, x: Tensor, scores: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""What every node makes of its neighbours, for R runs.

    .. math::
        y_{ih} = \sum_{j} m_{ijh} \alpha_{ijh} x_{jh}, \quad
        \alpha_{ijh} = \mathrm{softmax}_j \, \mathrm{LeakyReLU}(s_{jh} + t_{ih})

    On the CPU a compiled loop makes one pass over the entries for the values and two for the gradients, which
    cannot be differentiated again.

    Parameters
    ----------
    neighbours : Neighbours, E entries
    x : Tensor, shape [R, N, H, C]
    scores : Tensor, shape [R, N, 2 H]
        s, then t.
    mask : Tensor, shape [R, E, H], optional
        Dropout of the coefficients; not differentiated.

    Examples
    --------
    >>> import plap
    >>> path = neighbours_and_self(plap.Graph.from_edges([(0, 1), (1, 2)]))
    >>> attend(path, torch.tensor([0.0, 1.0, 5.0]).reshape(1, 3, 1, 1), torch.zeros(1, 3, 2)).flatten()
    tensor([0.5000, 2.0000, 3.0000])
    """
    if not compiled_for(x.device):
        return _gathered(neighbours, x, scores, mask)
    loops = _loops()
    channels = x.shape[3]
    missing = -channels % loops.BLOCK
    padded = pad(x, (0, missing)) if missing else x.contiguous()
    mask = None if mask is None else mask.to(x.dtype).contiguous()
    result: Tensor = _Attention.apply(neighbours, padded, scores.contiguous(), mask)  # type: ignore[no-untyped-call]
    return result[..., :channels] if missing else result


def weighted_sums(neighbours: Neighbours, x: Tensor, weights: Tensor) -> Tensor:
    """Σ_j w_ij x_j of every run, [R, N, C]; differentiable once in both.

    Parameters
    ----------
    neighbours : Neighbours, E entries
    x : Tensor, shape [R, N, C]
    weights : Tensor, shape [R, E]
        They need not be symmetric.

    Examples
    --------
    >>> import plap
    >>> edge = neighbours_alone(plap.Graph.from_edges([(0, 1)]))
    >>> weighted_sums(edge, torch.tensor([[[1.0], [2.0]]]), torch.tensor([[10.0, 100.0]])).flatten()
    tensor([ 20., 100.])
    """
    if not compiled_for(x.device):
        messages = weights.unsqueeze(2) * x.index_select(1, neighbours.indices)
        return torch.zeros_like(x).index_add(1, neighbours.receivers, messages)
    channels = x.shape[2]
    missing = -channels % _loops().BLOCK
    padded = pad(x, (0, missing)) if missing else x.contiguous()
    result: Tensor = _WeightedSums.apply(neighbours, padded, weights.contiguous())  # type: ignore[no-untyped-call]
    return result[..., :channels] if missing else result


def log_lengths(neighbours: Neighbours, x: Tensor) -> Tensor:
    """Logarithm of ‖x_i − x_j‖ for every entry, [R, E], −∞ where both ends are equal; differentiable once.

    What :func:`plap.calculus.log_norm` says of the differences; in float64 their squares must not leave its
    range.

    Parameters
    ----------
    neighbours : Neighbours, E entries
    x : Tensor, shape [R, N, C]

    Examples
    --------
    >>> import plap
    >>> edge = neighbours_alone(plap.Graph.from_edges([(0, 1)]))
    >>> log_lengths(edge, torch.tensor([[[1.0, 0.0], [4.0, 4.0]]])).exp().round(decimals=3)
    tensor([[5., 5.]])
    """
    if not compiled_for(x.device):
        return log_norm(x.index_select(1, neighbours.receivers) - x.index_select(1, neighbours.indices))
    result: Tensor = _LogLengths.apply(neighbours, x.contiguous())  # type: ignore[no-untyped-call]
    return result


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, neighbours: Neighbours, x: Tensor, scores: Tensor, mask: Tensor | None) -> Tensor:
        alpha = x.new_empty(x.shape[0], neighbours.indices.shape[0], x.shape[2])
        _run("score", x, neighbours, scores, alpha)
        alpha.exp_()
        result = torch.empty_like(x)
        _run("sum", x, neighbours, alpha, mask, x, result)
        ctx.neighbours = neighbours
        ctx.save_for_backward(x, scores, alpha, mask)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor, None]:
        x, scores, alpha, mask = ctx.saved_tensors
        grad = grad.contiguous()
        slopes = alpha.new_empty(*alpha.shape[:2], 2 * alpha.shape[2])
        of_x, of_scores = torch.empty_like(x), torch.empty_like(scores)
        _run("to_targets", x, ctx.neighbours, scores, alpha, mask, x, grad, slopes, of_scores)
        _run("to_sources", x, ctx.neighbours, ctx.neighbours.reverse, grad, slopes, of_x, of_scores)
        return None, of_x, of_scores, None


class _WeightedSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, neighbours: Neighbours, x: Tensor, weights: Tensor) -> Tensor:
        ctx.neighbours = neighbours
        ctx.save_for_backward(x, weights)
        result = torch.empty_like(x)
        _run("add", x.unsqueeze(2), neighbours, weights, x, result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        x, weights = ctx.saved_tensors
        grad, shape = grad.contiguous(), x.unsqueeze(2)
        of_x, of_weights = None, None
        if ctx.needs_input_grad[1]:
            of_x, back = torch.empty_like(x), weights.index_select(1, ctx.neighbours.reverse)
            _run("add", shape, ctx.neighbours, back, grad, of_x)
        if ctx.needs_input_grad[2]:
            of_weights = torch.empty_like(weights)
            _run("pair", shape, ctx.neighbours, grad, x, of_weights)
        return None, of_x, of_weights


class _LogLengths(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, neighbours: Neighbours, x: Tensor) -> Tensor:
        squares = x.new_empty(x.shape[0], neighbours.indices.shape[0], dtype=torch.float64)
        _run("apart", x.unsqueeze(2), neighbours, x, squares)
        ctx.neighbours = neighbours
        ctx.save_for_backward(x, squares)
        return (0.5 * squares.log()).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        x, squares = ctx.saved_tensors
        both = (grad + grad.index_select(1, ctx.neighbours.reverse)).double()
        of_x = torch.empty_like(x)
        pulls = torch.where(squares > 0, both / squares, 0)
        _run("pull", x.unsqueeze(2), ctx.neighbours, x, pulls, of_x)
        return None, of_x


def _run(step: str, x: Tensor, neighbours: Neighbours, *arrays: Tensor | None) -> None:
    runs, nodes, heads, channels = x.shape
    arrays = (neighbours.indptr, neighbours.indices, *arrays)
    addresses = [0 if array is None else array.data_ptr() for array in arrays]
    sizes = (runs, nodes, neighbours.indices.shape[0], heads, channels)
    _loops().launch(step, x.dtype == torch.float64, sizes, *addresses)


def _gathered(neighbours: Neighbours, x: Tensor, scores: Tensor, mask: Tensor | None) -> Tensor:
    """The same in plain PyTorch, with one array of size edges × channels."""
    heads = x.shape[2]
    source, target = neighbours.indices, neighbours.receivers
    z = leaky_relu(scores[:, source, :heads] + scores[:, target, heads:], _SLOPE)
    most = torch.full_like(scores[:, :, :heads], -torch.inf)
    most = most.scatter_reduce(1, target[None, :, None].expand_as(z), z.detach(), "amax")
    alpha = (z - most[:, target]).exp()
    alpha = alpha / torch.zeros_like(most).index_add(1, target, alpha)[:, target]
    if mask is not None:
        alpha = alpha * mask
    return torch.zeros_like(x).index_add(1, target, alpha.unsqueeze(3) * x[:, source])


def _loops() -> Any:
    """The module of compiled loops, imported with the first call: Numba takes a second to import."""
    import plap.nn.attention_loops as loops  # noqa: PLC0415

    return loops
