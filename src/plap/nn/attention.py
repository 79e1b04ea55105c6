"""PyG's attention layer with a sum over neighbours that needs no array of size edges × channels."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch_geometric.nn import GATConv

from plap.memo import Memo
from plap.nn.linear import SHORT, wide
from plap.sparse import csr_tensor


class AttentionConv(GATConv):  # type: ignore[misc]
    """``GATConv`` that on the CPU sums over neighbours by sparse products, one per head.

    Values and gradients are those of ``GATConv`` up to rounding; second derivatives are refused.
    """

    def propagate(self, edge_index: Tensor, size: Any = None, **arguments: Any) -> Tensor:
        """The sum over neighbours, [N, heads, channels]."""
        x, alpha = arguments["x"][0], arguments["alpha"]
        if x.device.type != "cpu":
            elsewhere: Tensor = super().propagate(edge_index, size=size, **arguments)
            return elsewhere
        result: Tensor = weighted_sum(edge_index, alpha, x)
        return result


@torch.compiler.disable  # type: ignore[untyped-decorator]
def weighted_sum(edges: Tensor, alpha: Tensor, x: Tensor) -> Tensor:
    r""":math:`y_{ih} = \sum_{e: j \to i} \alpha_{eh} x_{jh}`; differentiable in alpha and x.

    Parameters
    ----------
    edges : Tensor, shape [2, E]
        Source above target; no edge is there twice.
    alpha : Tensor, shape [E, H]
    x : Tensor, shape [N, H, C]

    Examples
    --------
    >>> edges = torch.tensor([[0, 1, 1], [1, 0, 1]])
    >>> weighted_sum(edges, torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[[1.0]], [[10.0]]])).flatten()
    tensor([20., 31.])
    """
    if x.dtype in SHORT or torch.is_autocast_enabled(x.device.type):
        with torch.autocast(x.device.type, enabled=False):
            summed: Tensor = weighted_sum(edges, wide(alpha), wide(x))
            return summed.to(x.dtype)
    nodes = x.shape[0]
    patterns = _PATTERNS.get(edges, lambda: _patterns(edges, nodes), nodes)
    result: Tensor = _WeightedSum.apply(patterns, alpha, x)  # type: ignore[no-untyped-call]
    return result


class _Pattern(NamedTuple):
    """The places of a sparse matrix that has one value per edge."""

    rows: Tensor
    columns: Tensor
    order: Tensor
    """Which edge each stored value is."""

    def with_values(self, values: Tensor) -> Tensor:
        """The CSR matrix with these values, in the order of the pattern."""
        nodes = self.rows.shape[0] - 1
        return csr_tensor(self.rows, self.columns, values, (nodes, nodes))

    def of_heads(self, alpha: Tensor) -> list[Tensor]:
        """One matrix per head from values [E, H] in the order of the edges."""
        return [self.with_values(values) for values in alpha.index_select(0, self.order).t().contiguous()]


_PATTERNS: Memo[tuple[_Pattern, _Pattern]] = Memo()


def _patterns(edges: Tensor, nodes: int) -> tuple[_Pattern, _Pattern]:
    """From sources to targets, and back."""
    source, target = edges
    return _pattern(target, source, nodes), _pattern(source, target, nodes)


def _pattern(row: Tensor, column: Tensor, nodes: int) -> _Pattern:
    order = torch.argsort(row * nodes + column)
    start = torch.zeros(nodes + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(row, minlength=nodes), 0, out=start[1:])
    index = torch.int32 if max(nodes, row.shape[0]) < 2**31 - 1 else torch.int64
    return _Pattern(start.to(index), column[order].to(index), order)


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, patterns: tuple[_Pattern, _Pattern], alpha: Tensor, x: Tensor) -> Tensor:
        ctx.patterns = patterns
        ctx.save_for_backward(alpha, x)
        return _product(patterns[0], alpha, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor]:
        alpha, x = ctx.saved_tensors
        there, back = ctx.patterns
        nothing = there.with_values(alpha.new_zeros(alpha.shape[0]))
        slopes = torch.empty_like(alpha)
        for head in range(x.shape[1]):
            left, right = grad[:, head].contiguous(), x[:, head].t()
            sampled = torch.sparse.sampled_addmm(nothing, left, right, beta=0.0)
            slopes[there.order, head] = sampled.values()
        return None, slopes, _product(back, alpha, grad)


def _product(pattern: _Pattern, alpha: Tensor, x: Tensor) -> Tensor:
    result = torch.empty_like(x)
    for head, matrix in enumerate(pattern.of_heads(alpha)):
        result[:, head] = matrix @ x[:, head].contiguous()
    return result
