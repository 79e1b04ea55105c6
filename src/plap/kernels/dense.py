"""The oracle: Eq. 11-13 with N × N matrices, one run at a time, as plain as possible."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.graph import Graph
from plap.kernels.backend import Capabilities, Variant
from plap.kernels.budget import Shape, Way
from plap.penalties import Penalty, Power


class Dense:
    """N × N matrices, to check the others; see :mod:`plap.kernels.backend` for what each member is."""

    name = "dense"
    capabilities = Capabilities(devices=None, second_derivatives=True, automatic=False)

    def propagate(
        self,
        x: Tensor,
        graph: Graph,
        penalty: Penalty,
        mu: Tensor,
        K: int,
        omega: float = 1.0,
        eps: float | None = None,
        *,
        detach_weights: bool = False,
        variant: Variant = "paper",
        budget: int | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """K steps of Eq. 11-13 on x [R, N, C], run by run."""
        with torch.autocast(x.device.type, enabled=False):
            W = weight_matrix(graph, x.dtype)
            runs = []
            parameters = torch.as_tensor(penalty.parameter).unbind()
            for X, parameter, mu_run in zip(x.unbind(), parameters, mu.unbind(), strict=True):
                F = X
                for _ in range(K):
                    stepped = step(F, X, W, penalty.at(parameter), mu_run, eps, detach_weights=detach_weights)
                    F = (1 - omega) * F + omega * stepped
                runs.append(F)
            return torch.stack(runs)

    def refuses(self, penalty: Penalty) -> str | None:
        """No penalty is refused."""
        return None

    def ways(self, shape: Shape, *, training: bool) -> list[Way]:
        """None: autograd keeps what it likes."""
        return []


DENSE = Dense()


def step(
    F: Tensor, X: Tensor, W: Tensor, penalty: Penalty, mu: Tensor, eps: float | None = None, *,
    detach_weights: bool = False,
) -> Tensor:  # fmt: skip
    """One step of Eq. 11: F' = α D^-1/2 M D^-1/2 F + β X, all [N, C] but W [N, N] and scalars."""
    D = W.sum(dim=1)
    D_root = torch.where(D > 0, D, 1).rsqrt() * (D > 0)
    psi = edge_weights(D_root[:, None] * F, W, penalty, eps)
    M = W * (psi.detach() if detach_weights else psi)
    m = 2 * mu / penalty.c
    alpha = 1 / (D_root.square() * M.sum(dim=1) + m)
    aggregation = alpha[:, None] * D_root[:, None] * M * D_root[None, :]
    return aggregation @ F + (m * alpha)[:, None] * X


def edge_matrix(Y: Tensor, W: Tensor, p: Tensor, eps: float | None = None) -> Tensor:
    """M_ij = W_ij ‖√W_ij (Y_i − Y_j)‖^(p−2) of Eq. 12 for Y = D^-1/2 F, with the zero-distance rules."""
    return W * edge_weights(Y, W, Power(p), eps)


def edge_weights(Y: Tensor, W: Tensor, penalty: Penalty, eps: float | None = None) -> Tensor:
    """ψ(ν_ij) for ν_ij = W_ij ‖Y_i − Y_j‖², with the zero-distance rules; [N, N]."""
    nu = W * (Y[:, None, :] - Y[None, :, :]).square().sum(dim=2)
    if isinstance(penalty, Power):
        return _edge_powers(Y, W, nu, torch.as_tensor(penalty.p), eps)
    if not penalty.unbounded:
        return penalty.psi(nu)
    if eps is not None:
        return penalty.psi(torch.where(nu > eps**2, nu, eps**2))
    active = _apart(Y, W, nu)
    return torch.where(active, penalty.psi(torch.where(active, nu, 1)), 0)


def _edge_powers(Y: Tensor, W: Tensor, nu: Tensor, p: Tensor, eps: float | None) -> Tensor:
    exponent = (p - 2) / 2
    if eps is not None and p <= 2:
        return torch.exp(exponent * torch.log(torch.where(nu > eps**2, nu, eps**2)))
    active = _apart(Y, W, nu)
    if p > 2:
        nu = torch.where(active, nu, nu.detach())
        active = nu > 0
    # not torch.pow, whose mixed second derivative is 0 instead of 1/ν at exponent 0
    power = torch.exp(exponent * torch.log(torch.where(active, nu, 1)))
    return power if p == 2 else torch.where(active, power, 0)


def _apart(Y: Tensor, W: Tensor, nu: Tensor) -> Tensor:
    """Where two rows differ by more than rounding."""
    size = Y.detach().square().sum(dim=1)
    tau = 4 * torch.finfo(Y.dtype).eps
    return nu > tau**2 * W * (size[:, None] + size[None, :])


def weight_matrix(graph: Graph, dtype: torch.dtype) -> Tensor:
    """W as a dense matrix, differentiable in ``graph.weight``."""
    zeros = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=dtype, device=graph.device)
    return zeros.index_put((graph.receivers(), graph.indices.long()), graph.weight.to(dtype))
