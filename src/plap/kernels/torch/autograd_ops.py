"""Plain PyTorch left to autograd: differentiable any number of times, under torch.func and torch.compile.

Autograd keeps arrays of edges × channels for every step. Where a gradient alone is asked for,
:mod:`plap.kernels.torch.chunked` gives the same without them.

M spans far more than float32 does (rows of 1e±15, p = 4), but α M, the only form in which it is used, does
not. So M is held as w · exp(exponent) and divided by its row sum with the row's largest exponent taken out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from plap.calculus import log_norm, log_power, log_rounding_floor
from plap.graph import Graph
from plap.kernels.backend import Variant
from plap.penalties import Penalty, Power


class _Entries(NamedTuple):
    """The graph as a step uses it; ``root`` is D^-1/2, and 1 for a node without edges."""

    receiver: Tensor
    source: Tensor
    weight: Tensor
    degree: Tensor
    root: Tensor


def propagate(
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
) -> Tensor:
    """K steps of Eq. 11-13 from F(0) = x; arguments as in :mod:`plap.kernels.backend`."""
    entries = _entries(graph, x)
    rule = _Rule.of(penalty, mu, eps, detach_weights, x)
    F = x
    for _ in range(K):
        stepped = _step(F, x, entries, rule, variant)
        F = stepped if omega == 1.0 else (1 - omega) * F + omega * stepped
    return F


def aggregation_weights(
    x: Tensor,
    graph: Graph,
    penalty: Penalty,
    mu: Tensor,
    eps: float | None = None,
    log_lengths: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """α_i D_i^-1/2 M_ij D_j^-1/2 of the step that starts from x, shape [R, entries], arguments as above.

    ``log_lengths`` makes log ‖Y_i − Y_j‖ of every entry, [R, entries], from Y [R, N, C]; by default PyTorch
    does, with an array of edges × channels.
    """
    entries = _entries(graph, x)
    rule = _Rule.of(penalty, mu, eps, False, x)._replace(log_lengths=log_lengths)
    alpha_M, _ = _normalised(x, entries, rule, entries.receiver)
    return alpha_M * entries.root[entries.receiver] * entries.root[entries.source]


class _Rule(NamedTuple):
    """How edges are weighed; the parameter of the penalty is [R, 1]."""

    penalty: Penalty
    anchor: Tensor
    """2μ/c, [R, 1]."""
    eps: float | None
    detach: bool
    log_lengths: Callable[[Tensor], Tensor] | None = None
    """In place of gathering both ends of every entry."""

    @classmethod
    def of(cls, penalty: Penalty, mu: Tensor, eps: float | None, detach: bool, x: Tensor) -> _Rule:
        parameter = torch.as_tensor(penalty.parameter).to(x.dtype)
        bound = penalty.at(parameter[:, None])
        return cls(bound, 2 * mu.to(x.dtype)[:, None] / bound.c, eps, detach)


def _step(F: Tensor, X: Tensor, entries: _Entries, rule: _Rule, variant: Variant) -> Tensor:
    """F'_i = s_i Σ_j α M_ij Y_j + β_i X_i with Y = s F, s = D^-1/2 and α of the receiver or the source."""
    owner = entries.receiver if variant == "paper" else entries.source
    alpha_M, beta = _normalised(F, entries, rule, owner)
    if variant == "published":
        beta = 2 * beta
    root = entries.root[:, None]
    message = alpha_M[:, :, None] * (root * F).index_select(1, entries.source)
    return root * torch.zeros_like(F).index_add(1, entries.receiver, message) + beta[:, :, None] * X


def _normalised(F: Tensor, entries: _Entries, rule: _Rule, owner: Tensor) -> tuple[Tensor, Tensor]:
    """α_owner M_ij of every entry, [R, entries], and β of every node, [R, N] (Eq. 12 and 13)."""
    exponent, keep = _log_psi(F, entries, rule)
    if rule.detach:
        exponent = exponent.detach()
    with torch.no_grad():
        shift = torch.zeros_like(F[:, :, 0]).scatter_reduce(
            1, entries.receiver.expand_as(exponent), torch.where(keep, exponent, 0), "amax"
        )
    anchor = rule.anchor * torch.exp(-shift)
    own = _scaled_power(exponent, keep, shift, entries.receiver) * entries.weight
    total = anchor.index_add(1, entries.receiver, own / entries.degree[entries.receiver])
    if owner is not entries.receiver:
        own = _scaled_power(exponent, keep, shift, owner) * entries.weight
    return own / total.index_select(1, owner), anchor / total


def _scaled_power(exponent: Tensor, keep: Tensor, shift: Tensor, owner: Tensor) -> Tensor:
    """ψ(ν) e^(−shift of the owner), never above 1 for the owner's own entries."""
    lowered = exponent - shift.index_select(1, owner)
    return torch.where(keep, torch.exp(torch.where(keep, lowered, 0)), 0)


def _log_psi(F: Tensor, entries: _Entries, rule: _Rule) -> tuple[Tensor, Tensor]:
    """M_ij / w_ij = ψ(ν_ij) as exponent and mask, [R, entries], by the cut or the clamp rule."""
    Y = entries.root[:, None] * F
    if rule.log_lengths is None:
        lengths = log_norm(Y.index_select(1, entries.receiver) - Y.index_select(1, entries.source))
    else:
        lengths = rule.log_lengths(Y)
    half_log_weight = 0.5 * torch.log(entries.weight)
    log_distance = lengths + half_log_weight
    with torch.no_grad():
        size = log_norm(Y)
        floor = half_log_weight + log_rounding_floor(
            size.index_select(1, entries.receiver), size.index_select(1, entries.source)
        )
    penalty, eps = rule.penalty, rule.eps
    if isinstance(penalty, Power):
        return _log_power(log_distance, floor, torch.as_tensor(penalty.p) - 2, eps)
    if not penalty.unbounded:
        return log_weights(penalty, log_distance)
    if eps is not None:
        clamped = log_distance <= math.log(eps)
        return log_weights(penalty, torch.where(clamped, math.log(eps), log_distance))
    apart = log_distance > floor
    exponent, keep = log_weights(penalty, torch.where(apart, log_distance, 0))
    return exponent, keep & apart


def log_weights(penalty: Penalty, log_distance: Tensor) -> tuple[Tensor, Tensor]:
    """log ψ of edges whose norms have these logarithms, and where ψ > 0."""
    psi = penalty.psi(squared(log_distance)).to(log_distance.dtype)
    keep = psi > 0
    return torch.log(torch.where(keep, psi, 1)), keep


def squared(log_distance: Tensor) -> Tensor:
    """ν of an edge norm's logarithm, at most 1e±30 in float32 so that powers of it stay in range."""
    largest = math.log(torch.finfo(log_distance.dtype).max) * 0.8
    return torch.exp((2 * log_distance).clamp(max=largest))


def _log_power(log_distance: Tensor, floor: Tensor, q: Tensor, eps: float | None) -> tuple[Tensor, Tensor]:
    if eps is None:
        return log_power(log_distance, log_distance > floor, q)
    clamped = (q <= 0) & (log_distance <= math.log(eps))
    log_distance = torch.where(clamped, math.log(eps), log_distance)
    return log_power(log_distance, (q <= 0) | (log_distance > floor), q)


def _entries(graph: Graph, x: Tensor) -> _Entries:
    degree = torch.where(graph.degree > 0, graph.degree, 1)
    root = degree.rsqrt().to(x.dtype)
    return _Entries(
        graph.receivers(), graph.indices.long(), graph.weight.to(x.dtype), degree.to(x.dtype), root
    )
