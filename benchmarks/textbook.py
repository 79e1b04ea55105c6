"""p-Laplacian message passing as everybody writes it first: the yardstick that `plap bench` measures against.

Both ends of every edge are gathered, subtracted, normed, raised to a power and scattered; autograd keeps the
edges × channels arrays of every step for its backward pass.
"""

from __future__ import annotations

import torch
from torch import Tensor


def propagate(x: Tensor, edge_index: Tensor, weight: Tensor, p: float, mu: float, K: int) -> Tensor:
    """K steps of Eq. 11-13 on x [N, C]; row 0 of ``edge_index`` is the source, row 1 the receiver."""
    source, receiver = edge_index
    degree = torch.zeros(x.shape[0], dtype=x.dtype).index_add(0, receiver, weight)
    scale = degree.pow(-0.5).masked_fill(degree == 0, 0.0).unsqueeze(1)
    m = 2 * mu / p
    f = x
    for _ in range(K):
        y = scale * f
        gradient = weight.sqrt().unsqueeze(1) * (y[receiver] - y[source])
        conductance = weight * gradient.norm(dim=1).pow(p - 2)
        conductance = conductance.masked_fill(conductance.isinf(), 0.0)
        total = torch.zeros_like(degree).index_add(0, receiver, conductance)
        alpha = 1 / (scale.squeeze(1).square() * total + m)
        message = conductance.unsqueeze(1) * y[source]
        gathered = torch.zeros_like(f).index_add(0, receiver, message)
        f = alpha.unsqueeze(1) * (scale * gathered + m * x)
    return f
