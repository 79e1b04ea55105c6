"""Penalties that tests try, and what a backend makes of one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import problems
from plap.kernels import registry
from plap.kernels.backend import Backend
from plap.penalties import MCP, SCAD, Cauchy, Geman, Huber, Penalty, Power, Welsch
from problems import Problem

PENALTIES: tuple[Penalty, ...] = (
    Power(1.0), Power(1.5), Power(2.0), Power(2.5), MCP(0.7), SCAD(0.3), Huber(0.5), Welsch(0.8), Geman(0.7),
    Cauchy(0.6),
)  # fmt: skip
OTHERS = tuple(penalty for penalty in PENALTIES if not isinstance(penalty, Power))

ON_CPU = [b for b in registry.BACKENDS if "cpu" in (b.capabilities.devices or {"cpu"})]


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def tracked(problem: Problem, penalty: Penalty, runs: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Leaves x, weight, parameter and mu of ``runs`` runs, each with numbers of its own."""
    x = torch.stack([problem.x * (1 + run) for run in range(runs)]).requires_grad_()
    parameter = float(penalty.parameter) * torch.linspace(1.0, 1.3, runs, dtype=torch.float64)
    mu = torch.linspace(0.1, 1.0, runs, dtype=torch.float64)
    weight = problem.graph.weight.clone()
    return x, weight.requires_grad_(), parameter.requires_grad_(), mu.requires_grad_()


def values_and_slopes(backend: Backend, problem: Problem, penalty: Penalty, **options: Any) -> list[Tensor]:
    x, weight, parameter, mu = inputs = tracked(problem, penalty, 3)
    graph = problems.per_entry_weight(problem.graph, weight)
    result = backend.propagate(x, graph, penalty.at(parameter), mu, 3, **options)
    cotangent = problems.features(result.numel(), 1, seed=5).reshape(result.shape)
    slopes = torch.autograd.grad(result, inputs, cotangent, allow_unused=True, materialize_grads=True)
    return [result.detach(), *slopes]
