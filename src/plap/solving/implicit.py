"""Derivatives of the minimiser by the implicit function theorem: one linear system, whatever the method."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from plap.errors import InputError
from plap.graph import Graph
from plap.solving.newton_cg import IndefiniteError, conjugate_gradients
from plap.solving.problem import Point, Problem

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
