"""Lengths that the data gives: quantiles of the edge norms, and units that follow the features' scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from plap.checks import check_number
from plap.graph import Graph

Unit = float | Tensor | Literal["auto"]
"""A length, or "auto" for the median edge norm."""

_SAMPLED = 2**16
"""Entries of a graph that are enough to know the length of an edge."""
_APART = 1e-6
"""Relative difference of lengths that rounding does not reach."""


@dataclass(frozen=True)
class Quantile:
    """A length that is measured where it is used: a quantile of the edge norms at X.

    ``MCP(Quantile(0.7))`` leaves out the longest 30 % of the edges of X, whatever the scale of X is. The
    length counts as a constant in the backward pass. It lies half-way between this edge and the next longer
    one, so that rounding does not decide on which side of it an edge is.

    Parameters
    ----------
    share : float between 0 and 1
        The share of the edges that is not longer.
    times : float, positive
        A factor.

    Examples
    --------
    >>> import plap
    >>> g = plap.Graph.from_edges([(0, 1)], num_nodes=3)
    >>> Quantile(0.5, times=2).measure(torch.tensor([[1.0], [3.0], [5.0]]), g)
    tensor(4.0000, dtype=torch.float64)
    """

    share: float
    times: float = 1.0

    def __post_init__(self) -> None:
        share = check_number("the share of a quantile", self.share, least=0, most=1)
        object.__setattr__(self, "share", float(share))
        object.__setattr__(self, "times", float(check_number("times", self.times, above=0)))

    def __repr__(self) -> str:
        times = "" if self.times == 1 else f", times={self.times:g}"
        return f"Quantile({self.share:g}{times})"

    def measure(self, x: Tensor, graph: Graph) -> Tensor:
        """The length at features x, [N, C] or [R, N, C]: one number, or one per run."""
        return self.times * typical_edge_norm(x, graph, self.share, between=True)


def typical_edge_norm(x: Tensor, graph: Graph, quantile: float = 0.5, *, between: bool = False) -> Tensor:
    """A quantile of the edge norms √W_ij ‖x_i/√D_i − x_j/√D_j‖, detached: by default their median.

    Self-loops, which have no length, do not count. On a graph with more than 65,536 entries, it is that of as
    many of them at equal distances.

    Parameters
    ----------
    x : Tensor, shape [N, C] or [R, N, C]
    graph : Graph
    quantile : float in [0, 1]
    between : bool
        Half-way between this edge norm and the next larger one; a little above the largest.

    Returns
    -------
    Tensor of no dimension, or of shape [R], float64
        Where it would be 0, the mean of the edges that have a length; 1 if none has.

    Examples
    --------
    >>> import plap
    >>> g = plap.Graph.from_edges([(0, 1)], num_nodes=3)
    >>> typical_edge_norm(torch.tensor([[1.0], [3.0], [5.0]]), g)
    tensor(2., dtype=torch.float64)
    """
    runs = (x if x.ndim == 3 else x.unsqueeze(0)).detach()
    taken = torch.arange(0, graph.num_entries, max(1, -(-graph.num_entries // _SAMPLED)), device=x.device)
    i, j = graph.receivers()[taken], graph.indices[taken].long()
    if graph.num_self_loops:
        taken, i, j = taken[i != j], i[i != j], j[i != j]
    if taken.numel() == 0 or runs.numel() == 0:
        result = runs.new_ones(runs.shape[0], dtype=torch.float64)
    else:
        root = graph.degree.detach().to(x.dtype).rsqrt().nan_to_num(posinf=0.0)
        weight = graph.weight.detach()[taken].to(x.dtype).sqrt()
        found = []
        for run in runs:
            scale = _power_of_two(run)  # squares neither overflow nor vanish, and nothing is rounded
            y = run / scale * root[:, None]
            norms = weight * (y[i] - y[j]).norm(dim=1)
            found.append(_quantile(norms, quantile, between=between) * scale.double())
        result = torch.stack(found)
    result = torch.where(torch.isfinite(result) & (result > 0), result, 1.0)
    return result if x.ndim == 3 else result.squeeze(0)


def _quantile(values: Tensor, share: float, *, between: bool) -> Tensor:
    """The value of this rank; where that is 0, the mean of the positive ones. No value is negative."""
    found = values.kthvalue(round(share * (values.numel() - 1)) + 1).values.double()
    mean = values.double().sum() / (values > 0).sum().clamp(min=1)
    if not between:
        return torch.where(found > 0, found, mean)
    longer = torch.where(values > found * (1 + 2 * _APART), values.double(), torch.inf).amin()
    middle = torch.where(torch.isfinite(longer), (found + longer) / 2, found * (1 + _APART))
    return torch.where(found > 0, middle, mean)


def _power_of_two(x: Tensor) -> Tensor:
    """The one below the largest absolute value; 1 where there is none."""
    found = x.abs().amax().double().log2().floor().exp2()
    return torch.where(torch.isfinite(found) & (found > 0), found, 1.0).to(x.dtype)
