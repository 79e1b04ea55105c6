"""Graph calculus, Eq. 1-8: gradient, divergence, p-Laplacian, energy and the regularised objective."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from plap.checks import check_finite, check_number
from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.penalties import Penalty, Power, check_parameter, from_arguments


def gradient(f: Tensor, graph: Graph) -> Tensor:
    r"""Graph gradient, Eq. 1: how much a function varies along each edge.

    .. math:: (\nabla f)([i,j]) = \sqrt{W_{ij}/D_j}\, f(j) - \sqrt{W_{ij}/D_i}\, f(i)

    Parameters
    ----------
    f : Tensor, shape [N] or [N, C]
        A real or vector function of the nodes.
    graph : Graph

    Returns
    -------
    Tensor, shape [entries] or [entries, C]
        One value per stored entry "receiver i ← source j", in the order of ``graph.indices``.

    Examples
    --------
    >>> edge = Graph.from_edges([(0, 1)])
    >>> gradient(torch.tensor([1.0, 3.0]), edge)
    tensor([ 2., -2.])
    """
    _check_function("f", f, check_graph(graph).num_nodes, "num_nodes")
    receiver_end, source_end = _edge_ends(f, graph)
    return source_end - receiver_end


def divergence(v: Tensor, graph: Graph) -> Tensor:
    r"""Graph divergence, Eq. 4: minus the adjoint of the gradient, ⟨∇f, v⟩ = ⟨f, −div v⟩ (Eq. 3).

    .. math:: (\mathrm{div}\, v)(i) = \sum_j \sqrt{W_{ij}/D_i}\, \bigl(v([i,j]) - v([j,i])\bigr)

    Parameters
    ----------
    v : Tensor, shape [entries] or [entries, C]
        A real or vector function of the stored entries, in the layout of :func:`gradient`.
    graph : Graph

    Returns
    -------
    Tensor, shape [N] or [N, C]

    Examples
    --------
    >>> edge = Graph.from_edges([(0, 1)])
    >>> divergence(torch.tensor([2.0, -2.0]), edge)
    tensor([ 4., -4.])
    """
    _check_function("v", v, check_graph(graph).num_entries, "num_entries")
    receiver, source = graph.receivers(), graph.indices.long()
    flow = _columns(v) * _weight(graph, v).sqrt()[:, None]
    # v([j, i]) sqrt(W_ij) is what entry (j, i) carries out of its source i, so no mirror of the entries is
    # needed, and the result is the adjoint even while a gradient check moves W_ij and W_ji apart.
    net = torch.zeros(graph.num_nodes, flow.shape[1], dtype=v.dtype, device=v.device)
    net = net.index_add(0, receiver, flow).index_add(0, source, -flow)
    return over_root_degree(net, graph).reshape(-1, *v.shape[1:])


def p_laplacian(f: Tensor, graph: Graph, p: float | Tensor) -> Tensor:
    r"""Graph p-Laplacian, Eq. 5 and 6; linear for p = 2, where it is I − D^{-1/2} W D^{-1/2}.

    .. math:: \Delta_p f = -\tfrac12\, \mathrm{div}\bigl(\|\nabla f\|^{p-2}\, \nabla f\bigr)

    For p < 2 an edge whose ends are equal up to rounding adds 0, the smallest subgradient of the energy.

    Parameters
    ----------
    f : Tensor, shape [N] or [N, C]
    graph : Graph
    p : float or 0-dimensional Tensor
        At least 1.

    Returns
    -------
    Tensor, shape [N] or [N, C]

    Examples
    --------
    >>> edge = Graph.from_edges([(0, 1)])
    >>> p_laplacian(torch.tensor([1.0, 3.0]), edge, p=2)
    tensor([-2.,  2.])
    >>> p_laplacian(torch.tensor([1.0, 3.0]), edge, p=1)
    tensor([-1.,  1.])
    """
    _check_function("f", f, check_graph(graph).num_nodes, "num_nodes")
    check_number("p", p, least=1)
    variation, flux = _variation_and_flux(f, graph, _scalar(p, f))
    return -0.5 * divergence(flux.reshape(variation.shape[0], *f.shape[1:]), graph)


def energy(
    f: Tensor, graph: Graph, p: float | Tensor | None = None, *, penalty: Penalty | None = None
) -> Tensor:
    r"""p-Dirichlet energy, Eq. 2, whose derivative is p Δ_p f (Eq. 7); also ⟨f, Δ_p f⟩.

    .. math:: \mathcal{S}_p(f) = \tfrac12 \sum_{ij} \|(\nabla f)([i,j])\|^p

    With another penalty, ρ(‖∇f‖) takes the place of ‖∇f‖^p.

    Parameters
    ----------
    f : Tensor, shape [N] or [N, C]
    graph : Graph
    p : float or 0-dimensional Tensor
        At least 1. Short for ``penalty=plap.penalties.Power(p)``.
    penalty : Penalty
        Instead of p.

    Returns
    -------
    0-dimensional Tensor

    Examples
    --------
    >>> edge = Graph.from_edges([(0, 1)])
    >>> energy(torch.tensor([1.0, 3.0]), edge, p=3)
    tensor(8.)
    >>> from plap.penalties import MCP
    >>> energy(torch.tensor([1.0, 3.0]), edge, penalty=MCP(1.5))
    tensor(0.7500)
    """
    _check_function("f", f, check_graph(graph).num_nodes, "num_nodes")
    weighing = from_arguments(p, penalty)
    check_parameter(weighing)
    parameter = _scalar(weighing.parameter, f)
    if isinstance(weighing, Power):
        variation, flux = _variation_and_flux(f, graph, parameter)
        return 0.5 * (flux * variation).sum()
    return 0.5 * weighing.at(parameter).rho(_edge_norms(f, graph)).sum()


def objective(
    f: Tensor,
    x: Tensor,
    graph: Graph,
    p: float | Tensor | None = None,
    mu: float | Tensor | None = None,
    *,
    penalty: Penalty | None = None,
) -> Tensor:
    r"""Regularised objective, Eq. 8, whose unique minimiser p-Laplacian message passing approaches.

    With a penalty that is not convex it may have several stationary points.

    .. math:: \mathcal{L}_p(f) = \mathcal{S}_p(f) + \mu \sum_i \|f(i) - x(i)\|^2

    Parameters
    ----------
    f, x : Tensor, shape [N] or [N, C]
        The candidate and the input it should stay close to, of equal shape and type.
    graph : Graph
    p : float or 0-dimensional Tensor
        At least 1. Short for ``penalty=plap.penalties.Power(p)``.
    mu : float or 0-dimensional Tensor
        Positive.
    penalty : Penalty
        Instead of p; a quantile is measured at x.

    Returns
    -------
    0-dimensional Tensor

    Examples
    --------
    >>> edge = Graph.from_edges([(0, 1)])
    >>> f, x = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0])
    >>> objective(f, x, edge, p=2, mu=0.5)
    tensor(9.)
    """
    _check_function("x", x, check_graph(graph).num_nodes, "num_nodes")
    if isinstance(f, Tensor) and (f.shape != x.shape or f.dtype != x.dtype):
        raise InputError(
            f"x must have the shape and type of f, {list(f.shape)} {f.dtype}, not {list(x.shape)} {x.dtype}"
        )
    check_number("mu", mu, above=0)
    if penalty is not None and isinstance(penalty, Penalty):
        penalty = penalty.measured(x, graph)
    return energy(f, graph, p, penalty=penalty) + _scalar(mu, f) * (f - x).square().sum()


def over_root_degree(f: Tensor, graph: Graph) -> Tensor:
    """D_i^(-1/2) f(i) of every node, shape [N] or [N, C]; f(i) itself for a node without edges."""
    inverse_root = torch.where(graph.degree > 0, graph.degree, 1).rsqrt().to(f.dtype)
    return f * inverse_root.reshape((-1,) + (1,) * (f.ndim - 1))


def incidence(graph: Graph) -> tuple[Tensor, Tensor]:
    r"""The rows of the incidence matrix B, one per undirected edge: B f is minus the gradient of f, Eq. 1.

    .. math:: (B f)_{ij} = \sqrt{W_{ij}/D_i}\, f(i) - \sqrt{W_{ij}/D_j}\, f(j), \qquad i < j

    Self-loops have no row, as their gradient is 0, but count in D. The weights are taken relative to the
    largest, which changes nothing, so that no quotient of weights and degrees can overflow or underflow.

    Returns
    -------
    ends : Tensor, int64, shape [edges, 2]
        i and j of each edge, in the order of ``graph.edges_once("upper")``.
    share : Tensor, float64, shape [edges, 2]
        The two entries of its row, :math:`\sqrt{W_{ij}/D_i}` and :math:`-\sqrt{W_{ij}/D_j}`.

    Examples
    --------
    >>> incidence(Graph.from_edges([(0, 1)]))
    (tensor([[0, 1]]), tensor([[ 1., -1.]], dtype=torch.float64))
    """
    receiver, source = graph.receivers(), graph.indices.long()
    weight = graph.weight.detach().double()
    weight = weight / weight.amax() if weight.numel() else weight
    degree = torch.zeros(graph.num_nodes, dtype=torch.float64, device=weight.device)
    degree.index_add_(0, receiver, weight)
    once = graph.edges_once("upper")
    ends = torch.stack([receiver[once], source[once]], dim=1)
    share = (weight[once, None] / degree[ends]).sqrt()
    share[:, 1].neg_()
    return ends, share


def log_norm(v: Tensor) -> Tensor:
    """Logarithm of ‖v‖ over the last axis, −∞ for a zero vector, whose gradient is 0 rather than NaN.

    Scaling by the largest component first keeps the squares of 1e±30 within float32.
    """
    scale = v.detach().abs().amax(dim=-1, keepdim=True)
    nonzero = scale > 0
    square = (v / torch.where(nonzero, scale, 1)).square().sum(dim=-1)
    nonzero, scale = nonzero[..., 0], scale[..., 0]
    half_log = 0.5 * torch.log(torch.where(nonzero, square, 1))
    return torch.where(nonzero, torch.log(scale) + half_log, -math.inf)


def log_rounding_floor(log_norm_i: Tensor, log_norm_j: Tensor) -> Tensor:
    """Log of the distance below which rows of these log norms are equal up to rounding.

    It is four machine epsilons of (‖Y_i‖² + ‖Y_j‖²)^½, and −∞ for two zero rows.
    """
    tau = 4 * torch.finfo(log_norm_i.dtype).eps
    return math.log(tau) + 0.5 * torch.logaddexp(2 * log_norm_i, 2 * log_norm_j)


def log_power(log_distance: Tensor, above: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """‖v‖^q as ``keep * exp(exponent)``, with the zero-distance rule where not ``above``.

    There the power is 0 for q < 0 (the cut), 1 for q = 0, and for q > 0 the exact power as a constant of v,
    so that no gradient is formed from rounding.
    """
    positive = (q > 0) & torch.isfinite(log_distance)
    below = torch.where(positive, log_distance.detach(), 0)
    exponent = q * torch.where(above, log_distance, below)
    return exponent, above | positive | (q == 0)


def _variation_and_flux(f: Tensor, graph: Graph, p: Tensor) -> tuple[Tensor, Tensor]:
    """∇f and ‖∇f‖^(p−2) ∇f, both [entries, C]."""
    receiver_end, source_end = _edge_ends(_columns(f), graph)
    variation = source_end - receiver_end
    with torch.no_grad():
        floor = log_rounding_floor(log_norm(receiver_end), log_norm(source_end))
    distance = log_norm(variation)
    exponent, keep = log_power(distance, distance > floor, p - 2)
    return variation, variation * torch.where(keep, torch.exp(exponent), 0)[:, None]


def _edge_norms(f: Tensor, graph: Graph) -> Tensor:
    """‖∇f‖ of every entry, with a gradient of 0 where the ends are equal up to rounding."""
    receiver_end, source_end = _edge_ends(_columns(f), graph)
    distance = log_norm(source_end - receiver_end)
    with torch.no_grad():
        apart = distance > log_rounding_floor(log_norm(receiver_end), log_norm(source_end))
    return torch.where(apart, torch.exp(torch.where(apart, distance, 0)), 0)


def _edge_ends(f: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
    """sqrt(W_ij/D_i) f(i) and sqrt(W_ij/D_j) f(j) of every entry (i, j)."""
    scaled = over_root_degree(f, graph)
    root = _weight(graph, f).sqrt().reshape((-1,) + (1,) * (f.ndim - 1))
    return root * scaled.index_select(0, graph.receivers()), root * scaled.index_select(0, graph.indices)


def _weight(graph: Graph, like: Tensor) -> Tensor:
    return graph.weight.to(like.dtype)


def _columns(f: Tensor) -> Tensor:
    return f[:, None] if f.ndim == 1 else f


def _check_function(name: str, f: Tensor, rows: int, meaning: str) -> None:
    """Refuse what is not a finite float32 or float64 tensor of shape [rows] or [rows, C]."""
    if not isinstance(f, Tensor) or f.dtype not in (torch.float32, torch.float64):
        kind = f.dtype if isinstance(f, Tensor) else type(f).__name__
        raise InputError(f"{name} must be a float32 or float64 tensor, not {kind}")
    if f.layout != torch.strided:
        raise InputError(f"{name} must be a dense tensor, not {f.layout}")
    if f.ndim not in (1, 2) or f.shape[0] != rows or 0 in f.shape[1:]:
        raise InputError(
            f"{name} must have shape [{rows}] or [{rows}, C] with {meaning} = {rows}, not {list(f.shape)}"
        )
    check_finite(name, f)


def _scalar(value: float | Tensor | None, like: Tensor) -> Tensor:
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)
