"""``solve``: the one place where arguments are checked and a method is chosen."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.penalties import Penalty, Power, check_weights, from_arguments
from plap.solving.anderson import Anderson
from plap.solving.descent import Method, descend
from plap.solving.implicit import ImplicitFunction, Minimiser, refuse_transforms
from plap.solving.info import SolveInfo
from plap.solving.jacobi import Jacobi
from plap.solving.lbfgs import LBFGS
from plap.solving.newton_cg import NewtonCG
from plap.solving.problem import Problem

MethodName = Literal["auto", "lbfgs", "anderson", "jacobi", "newton-cg"]

METHODS: dict[str, Callable[[Problem, float], Method]] = {
    "lbfgs": LBFGS,
    "anderson": Anderson,
    "jacobi": Jacobi,
    "newton-cg": NewtonCG,
}


def solve(
    x: Tensor,
    graph: Graph,
    p: float | Tensor | None = None,
    mu: float | Tensor | None = None,
    tol: float = 1e-6,
    *,
    penalty: Penalty | None = None,
    method: MethodName = "auto",
    eps: float | None = None,
    max_iter: int = 5_000,
) -> tuple[Tensor, SolveInfo]:
    r"""Find the one minimiser of the regularised objective, Eq. 8.

    .. math:: F^* = \arg\min_F \; \mathcal{S}_p(F) + \mu \|F - X\|^2

    With a penalty that is not convex (see :mod:`plap.penalties`) the objective may have several stationary
    points; this is one to which the objective falls from x, and ``info.convex`` is False.

    Every method starts from x, and every step is halved until the objective falls. The work is done in
    float64 whatever the type of x.

    F* is differentiable in x, in the edge weights, in mu and in p or the penalty's parameter. Backward solves
    one linear system with the Hessian of the objective, to ``tol`` as well, so nothing of the iteration is
    kept; derivatives are right where it converged. They are refused where this Hessian is found to be
    indefinite, which can happen with penalties that are not convex. Second derivatives are refused.

    Parameters
    ----------
    x : Tensor, shape [N] or [N, C], float32 or float64
    graph : Graph
        On the same device as x.
    p : float or Tensor of no dimension, at least 1
        Short for ``penalty=plap.penalties.Power(p)``.
    mu : float or Tensor of no dimension, positive
        For p ≠ 2 its meaning depends on the scale of x: F*(cx; mu) = c F*(x; mu c^(2−p)).
    tol : float, positive
        Stop where ‖∇L(F)‖ ≤ tol ‖∇L(X)‖.
    penalty : Penalty
        In place of p.
    method : {"auto", "lbfgs", "anderson", "jacobi", "newton-cg"}
        "jacobi" is the paper's iteration, Eq. 11-13, damped by 1/(p−1) for p > 2. "anderson" accelerates it
        by its last eight steps, and "lbfgs" takes it as the first step of a quasi-Newton method that learns
        from eight. "newton-cg" solves with the Hessian; for p = 2 that is the method of conjugate gradients.
        "auto" is "lbfgs": it takes the fewest walks over the edges for p ≤ 1.5, where they are many; for
        p ≥ 2 "anderson" takes up to a tenth fewer, but its steps cost more besides.
    eps : float, optional
        For p < 2, and other penalties whose weights are unbounded at 0, the edge norm below which the energy
        is a parabola. By default a thousandth of the median edge norm of x over the edges where it is not 0.
        It counts as a constant in derivatives.
    max_iter : int
        Steps after which to give up; ``info.converged`` is False then.

    Returns
    -------
    y : Tensor of the shape and type of x
    info : SolveInfo

    Examples
    --------
    For p = 2 this is mu (Δ + mu I)^-1 x; on one edge the mean stays, and the difference shrinks
    to a share of mu/(2 + mu).

    >>> import torch, plap
    >>> g = plap.Graph.from_edges([(0, 1)])
    >>> y, info = plap.solve(torch.tensor([1.0, 3.0]), g, p=2, mu=2)
    >>> y, info.converged
    (tensor([1.5000, 2.5000]), True)

    With a learnable mu, the slope of the difference 2 mu/(2 + mu) is 4/(2 + mu)².

    >>> mu = torch.tensor(2.0, requires_grad=True)
    >>> y, _ = plap.solve(torch.tensor([1.0, 3.0]), g, p=2, mu=mu)
    >>> (y[1] - y[0]).backward()
    >>> mu.grad
    tensor(0.2500)
    """
    weighing = from_arguments(p, penalty)
    if mu is None:
        raise InputError("mu must be a number, not None")
    named = weighing.parameter_name, weighing.parameter
    refuse_transforms(x, weighing.parameter, mu)
    _check(x, graph, (named, ("mu", mu)), max_iter, method)
    name = "lbfgs" if method == "auto" else method
    value, strength, tol = _number(*named, least=weighing.least), _number("mu", mu), _number("tol", tol)
    check_weights(weighing, x)
    eps = None if eps is None else _number("eps", eps)
    if x.numel() == 0:
        return x.clone(), SolveInfo(0, 0.0, 0.0, (0.0,), True, 0, name, weighing.convex)
    is_power = isinstance(weighing, Power)
    scale = _unit(x) if is_power else 1.0
    with torch.no_grad():
        unit_mu = min(max(strength * _power(scale, 2 - value), 1e-280), 1e280) if is_power else strength
        X = x.detach().double().reshape(graph.num_nodes, -1) / scale
        problem = Problem(X, graph, weighing.at(value), unit_mu, None if eps is None else eps / scale)
        point, history, residual = descend(problem, METHODS[name](problem, tol), tol, max_iter)
    unit = _power(scale, value) if is_power else 1.0
    info = SolveInfo(
        iterations=len(history) - 1,
        residual=residual,
        objective=(point.value - point.excess) * unit,
        history=tuple(value * unit for value in history),
        converged=residual <= tol,
        edge_passes=problem.edge_passes,
        method=name,
        convex=weighing.convex,
    )
    at = Minimiser(problem, graph, point, scale, tol, max_iter)
    y: Tensor = ImplicitFunction.apply(x, graph.weight, weighing.parameter, mu, at)  # type: ignore[no-untyped-call]
    return y, info


def _unit(x: Tensor) -> float:
    """A power of two that brings every row of x below ½, where no power of an edge norm can overflow.

    F*(cx; mu) = c F*(x; mu c^(2-p)), so the problem can be solved in any unit.
    """
    largest = float(x.detach().abs().amax()) * 2 * math.sqrt(x[0].numel())
    return math.ldexp(1.0, min(math.frexp(largest)[1], 1023)) if largest > 0 else 1.0


def _power(base: float, exponent: float) -> float:
    """base^exponent, held within the range of numbers."""
    return math.exp(min(max(exponent * math.log(base), -700.0), 700.0))


def _check(
    x: Tensor, graph: Graph, parameters: tuple[tuple[str, float | Tensor], ...], max_iter: int, method: str
) -> None:
    """Refuse what has no meaning, naming the argument."""
    if not isinstance(graph, Graph):
        raise InputError(f"graph must be a plap.Graph, not {type(graph).__name__}")
    if not isinstance(x, Tensor) or x.dtype not in (torch.float32, torch.float64):
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"x must be a float32 or float64 tensor, not {kind}")
    if x.layout != torch.strided:
        raise InputError(f"x must be a dense tensor, not {x.layout}")
    if x.ndim not in (1, 2) or x.shape[0] != graph.num_nodes:
        n = graph.num_nodes
        raise InputError(f"x must have shape [{n}] or [{n}, C], a row for each node, not {list(x.shape)}")
    if x.device != graph.device:
        raise InputError(f"x is on {x.device} but graph is on {graph.device}")
    for name, value in parameters:
        if isinstance(value, Tensor) and value.device != x.device:
            raise InputError(f"{name} is on {value.device} but x is on {x.device}")
    if not bool(torch.isfinite(x).all()):
        where = (~torch.isfinite(x)).nonzero()[0].tolist()
        raise InputError(f"x{where} = {float(x[tuple(where)])} is not finite")
    if isinstance(max_iter, bool) or not isinstance(max_iter, numbers.Integral) or max_iter < 0:
        raise InputError(f"max_iter must be an integer of 0 or more, not {max_iter!r}")
    if method not in get_args(MethodName):
        raise InputError(f"method must be one of {', '.join(get_args(MethodName))}, not {method!r}")


def _number(name: str, value: float | Tensor, least: float | None = None) -> float:
    """``value`` as a number: at least ``least``, or positive where ``least`` is None."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise InputError(f"{name} must be one number, not a tensor of shape {list(value.shape)}")
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{name} must be a number, not {value!r}")
    number = float(value)
    if not math.isfinite(number) or not (number > 0 if least is None else number >= least):
        wanted = "positive and finite" if least is None else f"at least {least:g} and finite"
        raise InputError(f"{name} must be {wanted}, not {number:g}")
    return number
