"""p-Laplacian message passing (Eq. 10-14): a call is checked and handed to a backend; and its memory."""

from __future__ import annotations

import math
import numbers
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from plap.checks import check_finite, check_flag, in_transform, is_number
from plap.edge_lengths import Unit, typical_edge_norm
from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.kernels import registry
from plap.kernels.backend import Backend, Variant
from plap.kernels.budget import Shape
from plap.kernels.torch.backend import aggregation_weights as torch_aggregation_weights
from plap.memory import MemoryBudget, parse_budget
from plap.penalties import Penalty, Power, check_in_range, from_arguments, is_built_in
from plap.penalty_checks import check_degree, check_weights

_LONGEST = 1e12
"""The largest γ in float32: edges a thousand times as long still have a square."""


def propagate(
    x: Tensor,
    graph: Graph,
    p: float | Tensor | None = None,
    mu: float | Tensor | None = None,
    K: int = 4,
    *,
    penalty: Penalty | None = None,
    unit: Unit = 1.0,
    detach_weights: bool = False,
    omega: float = 1.0,
    eps: float | None = None,
    variant: Variant = "paper",
    backend: str | Backend = "auto",
    memory_budget: MemoryBudget = None,
) -> Tensor:
    r"""Take K steps of p-Laplacian message passing from F(0) = x (Eq. 11-13), or of another penalty's.

    .. math::
        F_i^{(k+1)} = \alpha_i \sum_j \frac{M_{ij}}{\sqrt{D_i D_j}} F_j^{(k)} + \beta_i X_i, \qquad
        M_{ij} = W_{ij} \bigl\| \sqrt{W_{ij}/D_i}\, F_i - \sqrt{W_{ij}/D_j}\, F_j \bigr\|^{p-2},

    with :math:`\alpha_i = 1 / (\sum_j M_{ij} / D_i + 2\mu/p)` and :math:`\beta_i = 2\mu\alpha_i/p`. A node
    without edges keeps its input. For p = 2 this is the linear recursion of Eq. 10. With another penalty
    (:mod:`plap.penalties`), M_ij = W_ij ψ(‖∇F‖²) and 2μ/c stands for 2μ/p.

    The result is differentiable in x, in the edge weights, in mu and in p or the penalty's parameter, and its
    gradients are finite also where neighbours are equal. For p ≠ 2 the meaning of mu depends on the scale of
    the features: F(cx; mu) = c F(x; mu c^(2−p)). That of a penalty's gamma always does. With ``unit="auto"``
    it does not: F(cx) = c F(x).

    Parameters
    ----------
    x : Tensor, shape [N, C] or [R, N, C], float32 or float64
        Features, or those of R independent runs over one graph.
    graph : Graph
        On the same device as x.
    p : float or Tensor, at least 1
        A number, or for R runs a tensor of shape [R]. Short for ``penalty=plap.penalties.Power(p)``.
    mu : float or Tensor, positive
        How strongly the result is tied to x; a number, or a tensor of shape [R].
    K : int, at least 1
    penalty : Penalty
        How an edge is weighed by its length, in place of p; its parameter may be a tensor of shape [R] too,
        or a quantile of the edge norms at x (:class:`plap.penalties.Quantile`).
    unit : float, Tensor of shape [R], or "auto"
        The length in which γ and μ are given: γ stands for s γ, and μ for μ s^(p−2) (μ/s with MCP and SCAD, μ
        with the penalties that are bounded at 0). By default 1, the unit of the features; "auto" is the
        median edge norm at x, as a constant in the backward pass.
    detach_weights : bool
        Treat ψ(‖∇F‖²) as a constant in the backward pass: cheaper, and what published robust models do.
    omega : float in (0, 2)
        Damping: F ← (1 − omega) F + omega F'. The paper has 1.
    eps : float, optional
        By default two rows that are equal up to rounding do not interact (M_ij = 0, the paper's rule). With
        ``eps`` the edge norm counts as at least eps instead, for p ≤ 2: M_ij = W_ij max(‖∇F‖, eps)^(p−2).
        The same holds for other penalties whose weights grow beyond bounds at 0; the rest ignore it.
    variant : {"paper", "published"}
        "published" takes α of the sending node and doubles β as the code of 2022 did; only to compare with
        its numbers.
    backend : {"auto", "fused", "triton", "torch", "dense"} or plap.kernels.backend.Backend
        "fused" is for the CPU; "triton" is for GPUs, if the extra ``gpu`` is installed; "torch" is plain
        PyTorch on any device and twice differentiable. None of them holds anything of size edges × channels,
        but "torch" does for second derivatives, torch.func and torch.compile. "dense" builds N × N matrices,
        to check the others. "auto" takes "fused" or "triton" where it can, and "torch" elsewhere. An object
        with the methods of a backend is used as it is.
    memory_budget : int or str, optional
        Bytes, or text such as "4GiB", that the call and its backward pass may allocate beyond x, the graph,
        the result and the gradients. Edges are then taken in smaller chunks and activations of the K steps
        recomputed instead of kept, as far as needed; :func:`plap.memory_needed` tells how little is enough.

    Returns
    -------
    Tensor of the shape of x

    Examples
    --------
    Two nodes and an edge: D = 1, so for p = 2 and mu = 1 a step averages a node with its neighbour.

    >>> import torch, plap
    >>> g = plap.Graph.from_edges([(0, 1)], num_nodes=3)
    >>> x = torch.tensor([[1.0], [3.0], [5.0]])
    >>> plap.propagate(x, g, p=2, mu=1, K=1)
    tensor([[2.], [2.], [5.]])

    The minimax concave penalty ignores an edge that is longer than gamma.

    >>> plap.propagate(x, g, penalty=plap.penalties.MCP(1.5), mu=1, K=1)
    tensor([[1.], [3.], [5.]])
    """
    settings = _check(x, graph, from_arguments(p, penalty), mu, K, omega, eps, variant, unit)
    check_flag("detach_weights", detach_weights)
    if settings.unusual and variant == "published":
        raise InputError(f"variant 'published' is defined for powers only, not for penalty {penalty!r}")
    budget = parse_budget(memory_budget)
    chosen = registry.choose(
        backend, x.device, x.dtype, variant, penalty=settings.unusual, bounded=budget is not None
    )
    runs = x if x.ndim == 3 else x.unsqueeze(0)
    result = chosen.propagate(
        runs, graph, settings.penalty, settings.mu, settings.K, omega, eps, detach_weights=detach_weights,
        variant=variant, budget=budget,
    )  # fmt: skip
    return result if x.ndim == 3 else result.squeeze(0)


def aggregation_weights(
    x: Tensor,
    graph: Graph,
    p: float | Tensor | None = None,
    mu: float | Tensor | None = None,
    *,
    penalty: Penalty | None = None,
    eps: float | None = None,
) -> Tensor:
    """α D^-1/2 M D^-1/2 of the step that starts from x: how much each stored entry counts.

    Returns
    -------
    Tensor, shape [entries] or [R, entries]
        In the order of ``graph.edge_index``.

    Examples
    --------
    >>> import torch, plap
    >>> g = plap.Graph.from_edges([(0, 1)])
    >>> plap.aggregation_weights(torch.tensor([[1.0], [3.0]]), g, p=2, mu=1)
    tensor([0.5000, 0.5000])
    """
    settings = _check(x, graph, from_arguments(p, penalty), mu, 1, 1.0, eps, "paper")
    runs = x if x.ndim == 3 else x.unsqueeze(0)
    weights = torch_aggregation_weights(runs, graph, settings.penalty, settings.mu, eps)
    return weights if x.ndim == 3 else weights.squeeze(0)


def in_absolute_units(
    penalty: Penalty, mu: float | Tensor | None, unit: Unit, x: Tensor, graph: Graph
) -> tuple[Penalty, float | Tensor | None]:
    """The penalty and μ in the unit of the features, with a quantile measured at x.

    Parameters
    ----------
    penalty, mu :
        In units of ``unit``.
    unit : float, Tensor of shape [R], or "auto"
        "auto": the median edge norm at x.
    x, graph :
        As for :func:`propagate`.
    """
    if isinstance(unit, str):
        if unit != "auto":
            raise InputError(f"unit must be a positive number or 'auto', not {unit!r}")
        unit = typical_edge_norm(x, graph)
    elif isinstance(unit, Tensor):
        _per_run("unit", unit, x.shape[0] if x.ndim == 3 else 1, x, least=None)
    else:
        unit = check_in_range("unit", unit, None)
    if mu is not None and (isinstance(unit, Tensor) or unit != 1):
        runs = x.shape[0] if x.ndim == 3 else 1
        _per_run("mu", mu, runs, x, least=None)
        if penalty.quantile is None:
            _per_run(penalty.parameter_name, penalty.parameter, runs, x, penalty.least)
        if not (is_built_in(penalty) or torch.compiler.is_compiling()):
            check_degree(penalty)
        penalty, mu = penalty.in_units_of(unit, mu)
    return penalty.measured(x, graph), mu


class _Settings(NamedTuple):
    penalty: Penalty
    """With its parameter as [R]."""
    mu: Tensor
    K: int

    @property
    def unusual(self) -> Penalty | None:
        """The penalty, unless it is a power, which every backend has."""
        return None if isinstance(self.penalty, Power) else self.penalty


def _check(
    x: Tensor, graph: Graph, penalty: Penalty, mu: float | Tensor | None, K: int, omega: float,
    eps: float | None, variant: str, unit: Unit = 1.0,
) -> _Settings:  # fmt: skip
    """Refuse what has no meaning, naming the argument; the parameters come back as one number per run."""
    check_graph(graph)
    if not isinstance(x, Tensor) or x.layout != torch.strided:
        kind = x.layout if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"x must be a dense tensor, not {kind}")
    if x.ndim not in (2, 3) or 0 in (x.shape[0] if x.ndim == 3 else 1, x.shape[-1]):
        raise InputError(f"x must have shape [N, C] or [R, N, C] with R and C positive, not {list(x.shape)}")
    if x.shape[-2] != graph.num_nodes:
        raise InputError(f"x has {x.shape[-2]} rows but graph has {graph.num_nodes} nodes")
    if x.dtype not in (torch.float32, torch.float64):
        raise InputError(f"x must be float32 or float64, not {x.dtype}")
    if x.device != graph.device:
        raise InputError(f"x is on {x.device} but graph is on {graph.device}")
    if isinstance(K, bool) or not isinstance(K, numbers.Integral) or K < 1:
        raise InputError(f"K must be an integer of 1 or more, not {K!r}")
    if not _is_one_number(omega) or not 0 < omega < 2:
        raise InputError(f"omega must lie between 0 and 2, not {omega!r}")
    if eps is not None and not (_is_one_number(eps) and _has_normal_square(eps, x.dtype)):
        raise InputError(f"eps must be positive, finite and its square a normal {x.dtype}, not {eps!r}")
    if variant not in get_args(Variant):
        raise InputError(f"variant must be one of {', '.join(get_args(Variant))}, not {variant!r}")
    check_finite("x", x)
    runs = x.shape[0] if x.ndim == 3 else 1
    penalty, mu = in_absolute_units(penalty, mu, unit, x, graph)
    parameter = _per_run(penalty.parameter_name, penalty.parameter, runs, x, penalty.least)
    if not (torch.compiler.is_compiling() or in_transform(parameter)):
        if not is_built_in(penalty):
            check_weights(penalty, x)
        if penalty.is_length and x.dtype == torch.float32 and bool((parameter > _LONGEST).any()):
            raise InputError(
                f"{penalty.parameter_name} must be at most {_LONGEST:g} in float32, not "
                f"{float(parameter.max()):g}: squares of longer edges overflow; scale x, or use float64"
            )
    return _Settings(penalty.at(parameter), _per_run("mu", mu, runs, x, least=None), int(K))


def _per_run(name: str, value: float | Tensor | None, runs: int, x: Tensor, least: float | None) -> Tensor:
    """``value`` as a tensor of shape [runs]: at least ``least``, or positive where ``least`` is None."""
    if not isinstance(value, Tensor):
        number = check_in_range(name, value, least)
        return torch.full((runs,), float(number), dtype=torch.float64, device=x.device)
    if value.device != x.device:
        raise InputError(f"{name} is on {value.device} but x is on {x.device}")
    if value.ndim > 1 or (value.ndim == 1 and value.shape[0] not in (1, runs)):
        raise InputError(f"{name} must be a number or have shape [{runs}], not {list(value.shape)}")
    if value.is_complex():
        raise InputError(f"{name} must be real, not {value.dtype}")
    if not value.is_floating_point():
        value = value.double()
    if not torch.compiler.is_compiling() and not in_transform(value):
        for number in value.detach().reshape(-1).tolist():
            check_in_range(name, number, least)
    return value.reshape(-1).expand(runs)


def _is_one_number(value: object) -> bool:
    return is_number(value) or (isinstance(value, Tensor) and value.ndim == 0)


def _has_normal_square(eps: float, dtype: torch.dtype) -> bool:
    return eps > 0 and math.isfinite(eps) and eps * eps >= torch.finfo(dtype).tiny


class MemoryNeeded(NamedTuple):
    """Bytes that a call of :func:`plap.propagate` needs, and in training its backward pass too."""

    ends: int
    """For x and the result, in training also for the gradients of both."""
    usual: int
    """Allocated in addition to these and the graph if no budget is given."""
    least: int
    """The smallest ``memory_budget`` that is accepted."""


def memory_needed(
    num_nodes: int,
    num_entries: int,
    channels: int,
    K: int = 4,
    *,
    runs: int = 1,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    backend: str = "auto",
    training: bool = True,
) -> MemoryNeeded:
    """How much memory :func:`plap.propagate` takes, from the sizes of its arguments.

    The edge weights are assumed to be of type ``dtype`` too; otherwise the fused backend keeps a copy.

    Parameters
    ----------
    num_nodes, num_entries : int
        Size of the graph; an undirected edge is two entries.
    channels, K, runs : int
    dtype : torch.dtype
        float32 or float64.
    device : torch.device or str
        The device to run on. Nothing is allocated there.
    backend : {"auto", "fused", "triton", "torch"}
    training : bool
        Whether gradients will be computed.

    Examples
    --------
    Ten steps on a million nodes and 64 channels usually take half as much again as they need.

    >>> import plap
    >>> need = plap.memory_needed(1_000_000, 50_000_000, channels=64, K=10)
    >>> need.ends
    1024000000
    >>> round(need.least / need.usual, 1)
    0.7
    """
    counts = {"num_nodes": num_nodes, "num_entries": num_entries, "channels": channels, "K": K, "runs": runs}
    for name, count in counts.items():
        least = 1 if name in ("K", "runs") else 0
        if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < least:
            raise InputError(f"{name} must be an integer of {least} or more, not {count!r}")
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"dtype must be float32 or float64, not {dtype}")
    names = registry.names(bounded=True)
    if backend not in names:
        raise InputError(f"backend must be one of {', '.join(names)}, not {backend!r}")
    where = torch.device(device)
    shape = Shape(runs, num_nodes, channels, num_entries, K, dtype.itemsize, where.type)
    chosen = (
        registry.choose("auto", where, dtype, bounded=True) if backend == "auto" else registry.named(backend)
    )
    ways = chosen.ways(shape, training=training)
    state = runs * num_nodes * channels * dtype.itemsize
    return MemoryNeeded((4 if training else 2) * state, ways[0].size, ways[-1].size)
