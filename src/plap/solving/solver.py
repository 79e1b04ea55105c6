"""``solve``: checks the arguments, chooses a method, and differentiates the minimiser that it finds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from plap.checks import check_choice, check_finite, check_integer, check_number
from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.penalties import Penalty, Power, check_parameter, from_arguments, is_built_in
from plap.penalty_checks import check_weights
from plap.solving.methods import (
    LBFGS,
    Anderson,
    IndefiniteError,
    Jacobi,
    Method,
    NewtonCG,
    conjugate_gradients,
    descend,
)
from plap.solving.problem import Point, Problem

MethodName = Literal["auto", "lbfgs", "anderson", "jacobi", "newton-cg"]

METHODS: dict[str, Callable[[Problem, float], Method]] = {
    "lbfgs": LBFGS,
    "anderson": Anderson,
    "jacobi": Jacobi,
    "newton-cg": NewtonCG,
}


@dataclass(frozen=True)
class SolveInfo:
    """How a solution was found."""

    iterations: int
    """Steps taken."""
    residual: float
    """‖∇L(F)‖ / ‖∇L(X)‖ at the result."""
    objective: float
    """L_p at the result, Eq. 8."""
    history: tuple[float, ...]
    """Value of the minimised function at X and after every step; it never increases. For p < 2 it counts edge
    norms below eps by a parabola (Huber's rule) and so lies slightly above Eq. 8."""
    converged: bool
    """Whether the residual reached the tolerance."""
    edge_passes: int
    """Passes over all edges, which take most of the time: one per gradient (with its objective), one per
    product with the Hessian, and for p < 2 one to choose eps if it is not given."""
    method: str
    """The method that was used, never "auto"."""
    convex: bool = True
    """Whether the penalty is convex, so that the result is the unique minimiser. Otherwise it is a stationary
    point below X, and there may be others."""


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
    r"""Find the unique minimiser of the regularised objective, Eq. 8.

    .. math:: F^* = \arg\min_F \; \mathcal{S}_p(F) + \mu \|F - X\|^2

    With a penalty that is not convex (see :mod:`plap.penalties`) the objective may have several stationary
    points; the result is one that the objective decreases to from x, and ``info.convex`` is False.

    Every method starts from x, and every step is halved until the objective decreases. The work is done in
    float64 whatever the type of x.

    F* is differentiable in x, in the edge weights, in mu and in p or the penalty's parameter. Backward solves
    one linear system with the Hessian of the objective, also to ``tol``, so no iterate has to be stored;
    derivatives are right where the solver converged. They are refused where this Hessian is found to be
    indefinite, which can happen with penalties that are not convex. Second derivatives are refused.

    Parameters
    ----------
    x : Tensor, shape [N] or [N, C], float32 or float64
    graph : Graph
        On the same device as x.
    p : float or 0-dimensional Tensor, at least 1
        Short for ``penalty=plap.penalties.Power(p)``.
    mu : float or 0-dimensional Tensor, positive
        For p ≠ 2 its meaning depends on the scale of x: F*(cx; mu) = c F*(x; mu c^(2−p)).
    tol : float, positive
        Stop where ‖∇L(F)‖ ≤ tol ‖∇L(X)‖.
    penalty : Penalty
        Instead of p; a quantile is measured at x.
    method : {"auto", "lbfgs", "anderson", "jacobi", "newton-cg"}
        "jacobi" is the paper's iteration, Eq. 11-13, damped by 1/(p−1) for p > 2. "anderson" accelerates it
        by its last eight steps, and "lbfgs" takes it as the first step of a quasi-Newton method that learns
        from eight. "newton-cg" solves with the Hessian; for p = 2 that is the method of conjugate gradients.
        "auto" is "lbfgs": it needs the fewest passes over the edges for p ≤ 1.5, where many are needed; for
        p ≥ 2 "anderson" needs up to a tenth fewer, but each of its steps costs more.
    eps : float, optional
        For p < 2, and other penalties whose weights are unbounded at 0, the edge norm below which the energy
        is a parabola. By default a thousandth of the median edge norm of x over the edges where it is not 0.
        It counts as a constant in derivatives.
    max_iter : int
        Largest number of steps; if it is reached before ``tol``, ``info.converged`` is False.

    Returns
    -------
    y : Tensor of the shape and type of x
    info : SolveInfo

    Examples
    --------
    For p = 2 this is mu (Δ + mu I)^-1 x; on one edge the mean stays, and the difference shrinks
    by the factor mu/(2 + mu).

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
    if weighing.quantile is not None:
        _check(x, graph, (), max_iter, method)
        weighing = weighing.measured(x, graph)
    named = weighing.parameter_name, weighing.parameter
    refuse_transforms(x, weighing.parameter, mu)
    _check(x, graph, (named, ("mu", mu)), max_iter, method)
    name = "lbfgs" if method == "auto" else method
    value, strength = check_parameter(weighing), check_number("mu", mu, above=0)
    tol = check_number("tol", tol, above=0)
    if not is_built_in(weighing):
        check_weights(weighing, x)
    eps = None if eps is None else check_number("eps", eps, above=0)
    if x.numel() == 0:
        return x.clone(), SolveInfo(0, 0.0, 0.0, (0.0,), True, 0, name, weighing.convex)
    is_power = isinstance(weighing, Power)
    scale = _unit(x) if is_power else 1.0
    with torch.no_grad():
        unit_mu = min(max(strength * _power(scale, 2 - value), 1e-280), 1e280) if is_power else strength
        X = x.detach().double().reshape(graph.num_nodes, -1) / scale
        try:
            problem = Problem(X, graph, weighing.at(value), unit_mu, None if eps is None else eps / scale)
            point, history, residual = descend(problem, METHODS[name](problem, tol), tol, max_iter)
        except OverflowError:
            residual = math.inf
        if residual == math.inf:
            raise InputError(
                f"x has values of up to {float(x.detach().abs().amax()):.1g}, for which the objective of "
                f"penalty {weighing!r} is beyond the range of float64: give x and gamma in a larger unit"
            )
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
    x: Tensor,
    graph: Graph,
    parameters: tuple[tuple[str, float | Tensor | None], ...],
    max_iter: int,
    method: str,
) -> None:
    """Refuse what has no meaning, naming the argument."""
    check_graph(graph)
    if not isinstance(x, Tensor) or x.dtype not in (torch.float32, torch.float64):
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"x must be a float32 or float64 tensor, not {kind}")
    if x.layout != torch.strided:
        raise InputError(f"x must be a dense tensor, not {x.layout}")
    if x.ndim not in (1, 2) or x.shape[0] != graph.num_nodes:
        n = graph.num_nodes
        raise InputError(f"x must have shape [{n}] or [{n}, C], one row per node, not {list(x.shape)}")
    if x.device != graph.device:
        raise InputError(f"x is on {x.device} but graph is on {graph.device}")
    for name, value in parameters:
        if isinstance(value, Tensor) and value.device != x.device:
            raise InputError(f"{name} is on {value.device} but x is on {x.device}")
    check_finite("x", x)
    check_integer("max_iter", max_iter, 0)
    check_choice("method", method, MethodName)


_TINY = 1e-150


def refuse_transforms(*values: object) -> None:
    """Refuse tensors inside torch.func: they stand for many values and cannot be compared with tol."""
    if any(isinstance(v, Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(v) for v in values):
        raise NotImplementedError(
            "plap.solve does not work inside torch.func's transforms: use torch.autograd.grad or backward()"
        )


@dataclass(frozen=True, eq=False)
class Minimiser:
    """F* of a problem in units where X is small, and how accurately to solve for its derivatives."""

    problem: Problem
    graph: Graph
    point: Point
    scale: float
    """That unit in terms of the user's."""
    tol: float
    max_iter: int


class ImplicitFunction(torch.autograd.Function):
    r"""F* as a function of X, W, mu and the penalty's parameter, which is p for powers.

    ∇L(F*) = 0 whatever X, W, p and mu are, so with H the Hessian of L and H λ = G, a cotangent G of F* pulls
    back to −∂⟨λ, ∇L⟩/∂(·):

    .. math::
        \bar X = 2 \mu \lambda, \qquad \bar\mu = -2 \langle \lambda, F^* - X \rangle, \qquad
        \bar p = -\sum_{i<j} t_{ij}^{p-2} (1 + p \log t_{ij})
            \langle \nabla F^*, \nabla\lambda \rangle_{ij},

    where t is the edge norm, or eps where that is larger. For other penalties c ∂ψ/∂γ replaces the factor of
    ⟨∇F*, ∇λ⟩.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, parameter: float | Tensor, mu: float | Tensor, at: Minimiser
    ) -> Tensor:
        """F* in the shape and type of x."""
        ctx.save_for_backward(weight)
        ctx.at, ctx.mu = at, float(mu)
        return (at.point.F * at.scale).reshape(x.shape).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Cotangents of x, weight, the penalty's parameter and mu."""
        at: Minimiser = ctx.at
        (weight,) = ctx.saved_tensors
        of_x, of_weight, of_parameter, of_mu, _ = ctx.needs_input_grad
        cotangent = grad.double().reshape(at.point.F.shape)
        adjoint = _adjoint(at, cotangent)
        x_slope = weight_slope = parameter_slope = mu_slope = None
        if of_x:
            x_slope = (2 * at.problem.mu * adjoint).reshape(grad.shape).to(grad.dtype)
        if of_mu:
            away = at.point.F - at.problem.X
            mu_slope = -2 * at.problem.mu / ctx.mu * at.scale * (adjoint * away).sum()
        if of_parameter or of_weight:
            parameter_slope, edges = _edge_slopes(at, adjoint)
        if of_weight:
            weight_slope = _weight_slope(at, adjoint, cotangent, edges, weight.double())
        return x_slope, weight_slope, parameter_slope if of_parameter else None, mu_slope, None


def _adjoint(at: Minimiser, cotangent: Tensor) -> Tensor:
    """λ with H λ = cotangent."""
    try:
        result, residual = conjugate_gradients(
            lambda v: at.problem.hessian_product(at.point.F, v),
            cotangent,
            at.point.metric,
            at.tol,
            at.max_iter,
        )
    except IndefiniteError:
        raise InputError(
            f"plap.solve has no gradient here: the objective of penalty {at.problem.penalty!r} is not convex "
            "at the stationary point (its Hessian is indefinite); a larger mu or plap.propagate has one"
        ) from None
    if residual > at.tol:
        warnings.warn(
            f"the derivative of plap.solve is inexact: its linear system was solved to {residual:.1g} in "
            f"{at.max_iter} steps (max_iter), not to {at.tol:.1g} (tol)",
            RuntimeWarning,
            stacklevel=2,
        )
    return result


def _edge_slopes(at: Minimiser, adjoint: Tensor) -> tuple[Tensor, Tensor]:
    """The cotangent of the parameter, and for every edge that of log W_ij where the degrees are constants."""
    problem = at.problem
    p, eps = problem.p, problem.eps
    of_parameter, of_log_weight = adjoint.new_zeros(()), [adjoint.new_zeros(0)]
    for block, difference, norm, psi in problem.walk(at.point.F):
        along = -at.scale * (difference * (block.matrix @ adjoint)).sum(dim=1)
        if p is not None:
            along *= psi
            log_norm = norm.clamp(min=max(eps, _TINY)).log() + math.log(at.scale)
            of_parameter += (along * (1 + p * log_norm)).sum()
            of_log_weight.append(along * torch.where(norm < eps, p, p * p / 2))
        else:
            rate = problem.penalty.dpsi_dparameter(norm.clamp(min=eps).square())
            of_parameter += problem.c * (along * rate).sum()
            of_log_weight.append(problem.c * along * (psi + problem.steepness(norm)))
    return of_parameter, torch.cat(of_log_weight)


def _weight_slope(at: Minimiser, adjoint: Tensor, cotangent: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
    """Cotangent of every stored entry: half of its edge's, and that of its row's degree D_i = Σ_j W_ij.

    D_i scales F_i and λ_i alone, so that 2 D_i times its cotangent is the sum of ⟨F_i, (H − 2μ) λ_i⟩ and
    ⟨λ_i, p Δ_p F_i⟩, and both operators are known at the solution.
    """
    mu, F = at.problem.mu, at.point.F
    turn = F * (cotangent - 2 * mu * adjoint) - 2 * mu * adjoint * (F - at.problem.X)
    receiver = at.graph.receivers()
    degree = torch.zeros_like(F[:, 0]).index_add_(0, receiver, weight)
    slope = (at.scale * turn.sum(dim=1) / (2 * degree))[receiver]
    once = at.graph.edges_once("upper")
    for entry in (once, at.graph.reverse_entries()[once]):
        slope[entry] += edges / (2 * weight[entry])
    return slope
