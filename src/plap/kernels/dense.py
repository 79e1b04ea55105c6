"""The oracle: Eq. 11-13 with N × N matrices, one run at a time, as plain as possible."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.graph import Graph
from plap.kernels.backend import Capabilities, Variant
from plap.kernels.budget import Shape, Way


class Dense:
    """N × N matrices, to check the others; see :mod:`plap.kernels.backend` for what each member is."""

    name = "dense"
    capabilities = Capabilities(devices=None, second_derivatives=True, automatic=False)

    def propagate(
        self,
        x: Tensor,
        graph: Graph,
        p: Tensor,
        mu: Tensor,
        K: int,
        omega: float = 1.0,
        eps: float | None = None,
        *,
        variant: Variant = "paper",
        budget: int | None = None,
    ) -> Tensor:
        """K steps of Eq. 11-13 on x [R, N, C], run by run."""
        W = weight_matrix(graph, x.dtype)
        runs = []
        for X, p_run, mu_run in zip(x.unbind(), p.unbind(), mu.unbind(), strict=True):
            F = X
            for _ in range(K):
                F = (1 - omega) * F + omega * step(F, X, W, p_run, mu_run, eps)
            runs.append(F)
        return torch.stack(runs)

    def ways(self, shape: Shape, *, training: bool) -> list[Way]:
        """None: autograd keeps what it likes."""
        return []


DENSE = Dense()


def step(F: Tensor, X: Tensor, W: Tensor, p: Tensor, mu: Tensor, eps: float | None = None) -> Tensor:
    """One step of Eq. 11: F' = α D^-1/2 M D^-1/2 F + β X, all [N, C] but W [N, N] and scalars p, mu."""
    D = W.sum(dim=1)
    D_root = torch.where(D > 0, D, 1).rsqrt() * (D > 0)
    M = edge_matrix(D_root[:, None] * F, W, p, eps)
    alpha = 1 / (D_root.square() * M.sum(dim=1) + 2 * mu / p)
    beta = 2 * mu / p * alpha
    aggregation = alpha[:, None] * D_root[:, None] * M * D_root[None, :]
    return aggregation @ F + beta[:, None] * X


def edge_matrix(Y: Tensor, W: Tensor, p: Tensor, eps: float | None = None) -> Tensor:
    """M_ij = W_ij ‖√W_ij (Y_i − Y_j)‖^(p−2) of Eq. 12 for Y = D^-1/2 F, with the zero-distance rules."""
    nu = W * (Y[:, None, :] - Y[None, :, :]).square().sum(dim=2)
    exponent = (p - 2) / 2
    if eps is not None and p <= 2:
        return W * torch.exp(exponent * torch.log(torch.where(nu > eps**2, nu, eps**2)))
    size = Y.detach().square().sum(dim=1)
    tau = 4 * torch.finfo(Y.dtype).eps
    active = nu > tau**2 * W * (size[:, None] + size[None, :])
    if p > 2:
        nu = torch.where(active, nu, nu.detach())
        active = nu > 0
    # not torch.pow, whose mixed second derivative is 0 instead of 1/ν at exponent 0
    M = W * torch.exp(exponent * torch.log(torch.where(active, nu, 1)))
    return M if p == 2 else torch.where(active, M, 0)


def weight_matrix(graph: Graph, dtype: torch.dtype) -> Tensor:
    """W as a dense matrix, differentiable in ``graph.weight``."""
    zeros = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=dtype, device=graph.device)
    return zeros.index_put((graph.receivers(), graph.indices.long()), graph.weight.to(dtype))
