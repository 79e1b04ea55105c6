"""How far a backend on a device is from the dense formula in float64, on the problem graphs of the tests."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

import problems
from plap.kernels.backend import Backend
from plap.kernels.dense import DENSE
from plap.penalties import MCP, SCAD, Cauchy, Geman, Huber, Penalty, Power, Welsch
from problems import DEGENERATE, PROBLEMS, Problem

PENALTIES: tuple[Penalty, ...] = (
    Power(1.0), Power(1.3), Power(1.5), Power(2.0), Power(2.5), Power(3.0), MCP(0.7), SCAD(0.3), Huber(0.5),
    Welsch(0.8), Geman(0.7), Cauchy(0.6),
)  # fmt: skip

RUNS = 2
SPREAD = 1.3
"""The second run's parameter over that of the first."""


class Errors(NamedTuple):
    """The largest |difference| / (1 + |expected|)."""

    values: float
    slopes: float
    """Of the gradients in x, the edge weights, the penalty's parameter and μ."""


def errors(
    backend: Backend, name: str, penalty: Penalty, device: torch.device, dtype: torch.dtype, steps: int = 3
) -> Errors:
    """Two runs on a problem graph: a backend's against those of the oracle.

    It begins with the same numbers, or with those in float64 where rows are equal in these alone. Where what
    rounding leaves of equal rows counts (:func:`vague`), float32 is compared with the formula in float32.
    """
    problem = PROBLEMS[name]()
    single = dtype == torch.float32
    given = Problem(problem.graph, problem.x.to(dtype).double())
    # after a step, rows that were equal differ by rounding, of which no power may be compared
    K = 1 if name in DEGENERATE else steps
    rough = vague(name, penalty) and single
    start = given if rough or name not in DEGENERATE else problem
    oracle = torch.float32 if rough else torch.float64
    expected = outcome(DENSE, start, penalty, K, torch.device("cpu"), oracle)
    found = outcome(backend, given, penalty, K, device, dtype)
    differences = [apart(got, wanted) for got, wanted in zip(found, expected, strict=True)]
    return Errors(differences[0], max(differences[1:]))


def outcome(
    backend: Backend, problem: Problem, penalty: Penalty, K: int, device: torch.device, dtype: torch.dtype
) -> list[Tensor]:
    """The result and its gradients in x, weights, parameter and mu against a fixed cotangent, on the CPU."""
    x = torch.stack([problem.x * (1 + run) for run in range(RUNS)]).to(device, dtype).requires_grad_()
    spread = torch.linspace(1.0, SPREAD, RUNS, dtype=torch.float64).to(device)
    parameter = (float(penalty.parameter) * spread).requires_grad_()
    mu = torch.linspace(0.1, 1.0, RUNS, dtype=torch.float64).to(device).requires_grad_()
    weight = problem.graph.weight.to(device, dtype).requires_grad_()
    graph = problems.per_entry_weight(problem.graph.to(device), weight)
    result = backend.propagate(x, graph, penalty.at(parameter), mu, K)
    cotangent = problems.features(result.numel(), 1, seed=5).reshape(result.shape).to(device, dtype)
    inputs = (x, weight, parameter, mu)
    slopes = torch.autograd.grad(result, inputs, cotangent, allow_unused=True, materialize_grads=True)
    return [value.detach().cpu().double() for value in (result, *slopes)]


def vague(name: str, penalty: Penalty) -> bool:
    """Whether gradients are only known roughly: p > 2 and rows that are equal up to rounding.

    What is left of their distance is noise, and a power of it counts.
    """
    return name in DEGENERATE and isinstance(penalty, Power) and SPREAD * float(penalty.parameter) > 2


def apart(got: Tensor, wanted: Tensor) -> float:
    """The largest |difference| / (1 + |expected|)."""
    return float(((got - wanted).abs() / (1 + wanted.abs())).max()) if got.numel() else 0.0
