"""Theorem 4: an upper bound on the risk of pGNN on a regular graph, term by term."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from plap.calculus import p_laplacian
from plap.checks import check_choice, check_finite, check_integer, check_number
from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.propagation import aggregation_weights, propagate

Form = Literal["lipschitz", "affine", "printed"]


@dataclass(frozen=True)
class RiskBound:
    """Both sides of the inequality, as means over the nodes."""

    risk: float
    """Mean of ``|y_i − ỹ_i|``: what the theorem bounds."""
    features: float
    """Mean of ``β_i |y_i − σ(X_i)|``: the risk of the features alone."""
    diffusion: float
    """The term of p-Laplacian diffusion."""
    noise: float
    """L times the mean of (1 − β_i) ‖ε_i‖."""

    @property
    def bound(self) -> float:
        """The right-hand side."""
        return self.features + self.diffusion + self.noise

    @property
    def holds(self) -> bool:
        """Whether the risk is within the bound, up to rounding."""
        return self.risk <= self.bound * (1 + 1e-9) + 1e-12


def risk_bound(
    x: Tensor,
    noise: Tensor,
    sigma: Callable[[Tensor], Tensor],
    lipschitz: float,
    graph: Graph,
    p: float,
    mu: float,
    K: int = 4,
    *,
    form: Form = "lipschitz",
) -> RiskBound:
    r"""Evaluate Theorem 4 with y = σ(X + ε) and ỹ = α D^{-1/2} M D^{-1/2} σ(F^{(K-1)}) + β σ(X).

    With S_i = Σ_j M_ij/d and all coefficients of step K−1, the three terms are the means of
    :math:`\beta_i |y_i - \sigma(X_i)|`, of :math:`L (1 - \beta_i) \|\epsilon_i\|`, and, by ``form``, of

    - ``"lipschitz"``: :math:`L \alpha_i \sum_j \frac{M_{ij}}{d} \|F_j - X_i\|`. Holds for every σ with
      Lipschitz constant L.
    - ``"affine"``: :math:`L \alpha_i \|R_i\|` with
      :math:`R^{(k)} = -\Delta_p F^{(k)} + S^{(k)} \alpha^{(k-1)} R^{(k-1)}`, which is
      :math:`\sum_j \frac{M_{ij}}{d} (F_j - X_i)`: the quantity in the paper's proof. The norm is outside the
      sum, so it holds for affine σ but not for every σ.
    - ``"printed"``: :math:`L \alpha_i \|\Delta_p F^{(K-1)} + \sum_{k \le K-2} \prod_{l=k}^{K-2} S^{(l)}
      \Delta_p X\|`, as printed in the theorem. The proof loses a sign and an α at every step and replaces
      :math:`F^{(k)}` by X; for K > 1 the inequality can fail, even for affine σ.

    Parameters
    ----------
    x : Tensor, float64, shape [N, C]
        The observed features.
    noise : Tensor, shape [N, C]
        ε = X* − X.
    sigma : function from a tensor [N, C] to [N]
        Applied to each row separately.
    lipschitz : float
        L.
    graph : Graph
        All degrees equal, and above 0.
    p, mu, K : numbers
        As in :func:`plap.propagate`.

    Examples
    --------
    >>> import torch, plap
    >>> ring = plap.Graph.from_edges([(k, (k + 1) % 6) for k in range(6)])
    >>> x = torch.arange(6, dtype=torch.float64).reshape(6, 1)
    >>> found = risk_bound(x, torch.zeros_like(x), lambda rows: rows.sum(1), 1.0, ring, p=2, mu=1, K=1)
    >>> f"{found.risk:.3f} <= {found.features:.3f} + {found.diffusion:.3f} + {found.noise:.3f}"
    '0.500 <= 0.000 + 0.833 + 0.000'
    """
    _check(x, noise, lipschitz, graph, form)
    K = check_integer("K", K, 1)
    p, mu = check_number("p", p, least=1), check_number("mu", mu, above=0)
    if not callable(sigma):
        raise InputError(f"sigma must be a function of a tensor, not {sigma!r}")
    truth, guess = sigma(x + noise), sigma(x)
    if not isinstance(truth, Tensor) or truth.shape != (graph.num_nodes,):
        kind = f"a tensor of shape {list(truth.shape)}" if isinstance(truth, Tensor) else repr(truth)
        raise InputError(f"sigma must return one value per node, not {kind}")
    steps = [_step(x, graph, p, mu, k) for k in range(K)]
    last = steps[-1]
    predicted = _sums(last.weight * sigma(last.state)[graph.indices.long()], graph) + last.beta * guess
    diffusion = _DIFFUSIONS[form](x, graph, steps, p)
    return RiskBound(
        float((truth - predicted).abs().mean()),
        float((last.beta * (truth - guess).abs()).mean()),
        lipschitz * float(diffusion.mean()),
        lipschitz * float(((1 - last.beta) * noise.norm(dim=1)).mean()),
    )


class _Step(NamedTuple):
    state: Tensor
    """F(k), [N, C]."""
    weight: Tensor
    """α M / d, [entries]."""
    alpha: Tensor
    beta: Tensor


def _step(x: Tensor, graph: Graph, p: float, mu: float, k: int) -> _Step:
    state = x if k == 0 else propagate(x, graph, p, mu, k, backend="torch")
    weight = aggregation_weights(state, graph, p, mu)
    beta = 1 - _sums(weight, graph)
    return _Step(state, weight, beta * p / (2 * mu), beta)


def _inside(x: Tensor, graph: Graph, steps: list[_Step], p: float) -> Tensor:
    """α_i Σ_j M_ij/d ‖F_j − X_i‖."""
    last = steps[-1]
    distance = (last.state[graph.indices.long()] - x[graph.receivers()]).norm(dim=1)
    return _sums(last.weight * distance, graph)


def _outside(x: Tensor, graph: Graph, steps: list[_Step], p: float) -> Tensor:
    """α_i ‖R_i‖, by the recursion."""
    rest = torch.zeros_like(x)
    alpha_before = torch.zeros_like(steps[0].alpha)
    for step in steps:
        carried = (1 - step.beta) / step.alpha * alpha_before
        rest = carried[:, None] * rest - p_laplacian(step.state, graph, p)
        alpha_before = step.alpha
    length: Tensor = rest.norm(dim=1)
    return steps[-1].alpha * length


def _as_printed(x: Tensor, graph: Graph, steps: list[_Step], p: float) -> Tensor:
    """The theorem's own; Δ_p^(k) X applies the operator that F(k) defines."""
    total = p_laplacian(steps[-1].state, graph, p)
    product = torch.ones_like(steps[0].beta)
    for step in reversed(steps[:-1]):
        share = (1 - step.beta) / step.alpha
        product = product * share
        conductance = step.weight / step.alpha[graph.receivers()]
        around = torch.zeros_like(x).index_add(
            0, graph.receivers(), conductance[:, None] * x[graph.indices.long()]
        )
        total = total + product[:, None] * (share[:, None] * x - around)
    length: Tensor = total.norm(dim=1)
    return steps[-1].alpha * length


_DIFFUSIONS = {"lipschitz": _inside, "affine": _outside, "printed": _as_printed}


def _sums(values: Tensor, graph: Graph) -> Tensor:
    """Sum over the entries of each row, [N]."""
    return torch.zeros(graph.num_nodes, dtype=values.dtype).index_add(0, graph.receivers(), values)


def _check(x: Tensor, noise: Tensor, lipschitz: float, graph: Graph, form: str) -> None:
    check_choice("form", form, Form)
    nodes = check_graph(graph).num_nodes
    both = isinstance(x, Tensor) and isinstance(noise, Tensor)
    if not both or x.dtype != torch.float64 or noise.shape != x.shape or x.ndim != 2:
        raise InputError("x and noise must be float64 tensors of one shape [N, C]")
    if x.shape[0] != nodes:
        raise InputError(f"x has {x.shape[0]} rows but graph has {nodes} nodes")
    check_finite("x", x)
    check_finite("noise", noise)
    check_number("lipschitz", lipschitz, least=0)
    if nodes == 0:
        raise InputError("graph must have at least one node")
    low, high = float(graph.degree.min()), float(graph.degree.max())
    if low <= 0 or high - low > 1e-9 * high:
        raise InputError(f"the graph must be regular, but its degrees range from {low:g} to {high:g}")
