"""The Triton kernels in Triton's interpreter, on tensors of the CPU.

``test_interpreter`` runs this file in a process of its own, because Triton reads TRITON_INTERPRET when it is
imported. The interpreter takes about 20 ms per program, so graphs are small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import plap
import problems
from allocations import Allocations
from plap.kernels import row_passes
from plap.kernels.backend import Backend
from plap.kernels.budget import KEEP_ALL, KEEP_NONE, Shape
from plap.kernels.dense import DENSE
from plap.kernels.triton import launcher, layout
from plap.kernels.triton.backend import INTERPRETED, TRITON
from plap.kernels.triton.segments import segments
from plap.penalties import MCP, SCAD, Cauchy, Geman, Huber, Penalty, Power, Welsch
from problems import DEGENERATE, PROBLEMS, Problem

if not INTERPRETED:
    pytest.skip("run by test_interpreter, with TRITON_INTERPRET=1", allow_module_level=True)

PENALTIES: tuple[Penalty, ...] = (
    Power(1.0), Power(1.3), Power(1.5), Power(2.0), Power(2.5), Power(3.0), MCP(0.7), SCAD(0.3), Huber(0.5),
    Welsch(0.8), Geman(0.7), Cauchy(0.6),
)  # fmt: skip
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def values_and_slopes(
    backend: Backend, problem: Problem, penalty: Penalty, K: int, *, runs: int = 1,
    dtype: torch.dtype = torch.float64, **options: Any,
) -> list[Tensor]:  # fmt: skip
    """The result and its gradients in x, weights, parameter and mu against a fixed cotangent."""
    x = torch.stack([problem.x * (1 + run) for run in range(runs)]).to(dtype).requires_grad_()
    parameter = float(penalty.parameter) * torch.linspace(1.0, 1.3, runs, dtype=torch.float64)
    mu = torch.linspace(0.1, 1.0, runs, dtype=torch.float64).requires_grad_()
    weight = problem.graph.weight.clone().to(dtype).requires_grad_()
    inputs = (x, weight, parameter.requires_grad_(), mu)
    graph = problems.per_entry_weight(problem.graph, weight)
    result = backend.propagate(x, graph, penalty.at(parameter), mu, K, **options)
    cotangent = problems.features(result.numel(), 1, seed=5).reshape(result.shape).to(dtype)
    slopes = torch.autograd.grad(result, inputs, cotangent, allow_unused=True, materialize_grads=True)
    return [result.detach(), *slopes]


def check_against_the_oracle(name: str, penalty: Penalty, K: int, **options: Any) -> None:
    results = values_and_slopes(TRITON, PROBLEMS[name](), penalty, K, **options)
    expected = values_and_slopes(DENSE, PROBLEMS[name](), penalty, K, **options)
    torch.testing.assert_close(results[0], expected[0], rtol=1e-12, atol=1e-12, msg=f"{name}: values")
    # rows that are equal up to rounding: what is left of their distance is noise, and a power of it counts
    largest = float(penalty.parameter) * (1.3 if options.get("runs", 1) > 1 else 1.0)
    vague = name in DEGENERATE and isinstance(penalty, Power) and largest > 2
    tolerance = 2e-6 if vague else 1e-12
    for got, wanted in zip(results[1:], expected[1:], strict=True):
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance, msg=name)


@every_penalty
def test_a_step_is_the_oracles_in_values_and_gradients(penalty: Penalty) -> None:
    for name in ("fixture", "duplicate_rows"):
        check_against_the_oracle(name, penalty, 1)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in ("fixture", "duplicate_rows")])
@pytest.mark.parametrize("penalty", [Power(1.0), Welsch(0.8)], ids=repr)
def test_every_problem_is_the_oracles(penalty: Penalty, name: str) -> None:
    check_against_the_oracle(name, penalty, 1)


@every_penalty
def test_float32_is_within_1e_6_of_the_oracle(penalty: Penalty) -> None:
    for name in PROBLEMS:
        check_float32(name, penalty)


def check_float32(name: str, penalty: Penalty) -> None:
    """Against the oracle from the same numbers; from those in float64 where rows are equal in these alone.

    Between equal rows, p > 2 leaves a power of what rounding made of their distance, in the dense formula as
    well: there the oracle is this formula in float32.
    """
    problem, mu = PROBLEMS[name](), numbers(0.1)
    at = penalty.at(numbers(float(penalty.parameter)))
    vague = name in DEGENERATE and isinstance(penalty, Power) and float(penalty.parameter) > 2
    x = problem.x.float()[None]
    start = x if vague else problem.x[None] if name in DEGENERATE else x.double()
    result = TRITON.propagate(x, problem.graph, at, mu, 1)[0]
    expected = DENSE.propagate(start, problem.graph, at, mu, 1)[0]
    torch.testing.assert_close(result.double(), expected.double(), rtol=1e-6, atol=1e-6, msg=name)


OPTIONS = ({"omega": 0.6}, {"eps": 0.25}, {"detach_weights": True})


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("penalty", [Power(1.5), SCAD(0.3)], ids=repr)
def test_options_and_runs_are_the_oracles(penalty: Penalty, options: dict[str, Any]) -> None:
    check_against_the_oracle("fixture", penalty, 2, runs=2, **options)


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, *OPTIONS], ids=str)
@every_penalty
def test_everything_is_the_oracles(penalty: Penalty, options: dict[str, Any]) -> None:
    for name in PROBLEMS:
        # after a step rows that were equal differ by rounding, of which no power may be compared
        check_against_the_oracle(name, penalty, 1 if name in DEGENERATE else 3, runs=2, **options)
        check_float32(name, penalty)


def test_gradcheck() -> None:
    graph = problems.random_graph(4, 0.7, seed=2)

    def run(x: Tensor, weight: Tensor, mu: Tensor, p: Tensor) -> Tensor:
        return TRITON.propagate(x, problems.per_entry_weight(graph, weight), Power(p), mu, 1)

    inputs = (
        problems.features(4, 1).reshape(1, 4, 1).requires_grad_(),
        graph.weight.clone().requires_grad_(),
        numbers(0.3).requires_grad_(),
        numbers(1.7).requires_grad_(),
    )
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four entries make a hub."""
    monkeypatch.setattr(launcher, "segments", lambda indptr, entries: segments(indptr, entries, size=3))


@pytest.mark.parametrize("penalty", [Power(1.5), MCP(2.0)], ids=repr)
@pytest.mark.usefixtures("short_segments")
def test_hubs_are_summed_in_segments(penalty: Penalty) -> None:
    """A star of eleven leaves: one row of four segments, and eleven that are whole."""
    star = problems.star(11)
    problem = Problem(star, problems.features(12))
    results = values_and_slopes(TRITON, problem, penalty, 2)
    expected = values_and_slopes(DENSE, problem, penalty, 2)
    for got, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)
    again = values_and_slopes(TRITON, problem, penalty, 2)
    assert all(first.equal(second) for first, second in zip(results, again, strict=True))


@pytest.mark.usefixtures("short_segments")
def test_segments_of_several_runs_do_not_meet() -> None:
    problem = Problem(problems.star(5), problems.features(6))
    results = values_and_slopes(TRITON, problem, Power(1.3), 1, runs=2, omega=0.7)
    for got, wanted in zip(
        results, values_and_slopes(DENSE, problem, Power(1.3), 1, runs=2, omega=0.7), strict=True
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("penalty", [Power(2.5), Huber(0.5)], ids=repr)
def test_rows_wider_than_a_block(penalty: Penalty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_WIDEST", 4)
    assert layout.layout(10, torch.float64).BLOCKS == 3
    problem = Problem(problems.path(3), problems.features(3, channels=10))
    results = values_and_slopes(TRITON, problem, penalty, 1, runs=2)
    for got, wanted in zip(results, values_and_slopes(DENSE, problem, penalty, 1, runs=2), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", [1.0, 4.0])
def test_rows_of_very_different_size_stay_finite_in_float32(p: float) -> None:
    graph = problems.weighted([(0, 1, 100.0), (1, 2, 0.01), (2, 3, 1.0), (0, 3, 7.0), (3, 4, 1.0)], 5)
    x = problems.features(5)
    x[0] *= 1e15
    x[1] *= 1e-15
    x[4] = x[3]
    for got in values_and_slopes(TRITON, Problem(graph, x), Power(p), 2, dtype=torch.float32):
        assert torch.isfinite(got).all()


def forward_and_backward(every: int, K: int) -> tuple[list[Tensor], int]:
    """Result and gradients of 2 runs, and the most bytes that were allocated besides."""
    graph = problems.star(5)
    x, grad = (problems.features(12, 4, seed).reshape(2, 6, 4).float() for seed in (2, 3))
    inputs = (
        graph.indptr,
        graph.indices,
        graph.weight.float(),
        graph.degree,
        numbers(1.4, 2.5),
        numbers(0.1, 1),
    )
    with Allocations(x, grad, *inputs) as seen:
        saved = row_passes.forward(launcher.KERNELS, x, *inputs, K, 1.0, 0.0, every)
        results = [saved.result]
        if every != KEEP_NONE:
            slopes = row_passes.backward(
                launcher.KERNELS, grad, saved, x, *inputs, 1.0, 0.0, every,
                want_weight=True, want_parameter=True,
            )  # fmt: skip
            assert slopes.weight is not None
            results += [slopes.x, slopes.weight, slopes.parameter, slopes.mu]
    return results, seen.peak - sum(result.numel() * result.element_size() for result in results)


def test_recomputing_changes_no_bit_and_memory_is_what_was_said() -> None:
    found = {every: forward_and_backward(every, K=4) for every in (KEEP_NONE, KEEP_ALL, 2)}
    for expected, result in zip(found[KEEP_ALL][0], found[2][0], strict=True):
        assert torch.equal(result, expected)
    shape = Shape(2, 6, 4, 10, 4, 4)
    for every, (_, taken) in found.items():
        # the interpreter's own copies are not counted, as NumPy makes them
        assert taken <= TRITON.bytes_needed(shape, every)


def test_the_least_budget_is_kept_and_one_byte_less_is_refused() -> None:
    problem = Problem(problems.path(3), problems.features(3, 2))

    def slopes(budget: int | None) -> list[Tensor]:
        x = problem.x.clone().requires_grad_()
        result = plap.propagate(x, problem.graph, 1.5, 0.1, 4, backend="triton", memory_budget=budget)
        return [result.detach(), *torch.autograd.grad(result.square().sum(), x)]

    need = plap.memory_needed(3, 4, 2, 4, dtype=torch.float64, backend="triton")
    assert need.least < need.usual
    for result, expected in zip(slopes(need.least), slopes(None), strict=True):
        assert result.equal(expected)
    with pytest.raises(plap.InputError, match="memory_budget is too small: 4 steps on 3 nodes"):
        slopes(need.least - 1)


def test_is_a_proper_operator() -> None:
    graph = problems.path(3)
    x = problems.features(3, 2)[None].requires_grad_()
    p, mu = numbers(1.5).requires_grad_(), numbers(0.1).requires_grad_()
    arguments = (
        x, graph.indptr, graph.indices, graph.weight.clone().requires_grad_(), graph.degree, p, mu, 1, 0.9,
        0.0, KEEP_ALL, "power", 1.0, False, torch.empty(0, 0, dtype=torch.int64),
    )  # fmt: skip
    torch.library.opcheck(TRITON.operators.forward, arguments)


def test_compiles_as_one_graph_and_exports() -> None:
    graph = problems.path(3)
    x = problems.features(3, 2)

    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return plap.propagate(x.relu(), graph, 1.5, 0.1, 1, backend="triton")

    model = Model()
    x.requires_grad_()
    expected = plap.propagate(x.relu(), graph, 1.5, 0.1, 1, backend="dense")
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    result = compiled(x)
    torch.testing.assert_close(result, expected)
    slopes = (torch.autograd.grad(value.square().sum(), x)[0] for value in (result, expected))
    torch.testing.assert_close(*slopes)
    x = x.detach()
    expected = expected.detach()
    torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), expected)


def test_vmap_is_more_runs() -> None:
    graph = problems.path(3)
    batch = torch.stack([problems.features(3, 2), problems.features(3, 2, seed=1)])
    over = torch.func.vmap(lambda one: plap.propagate(one, graph, 1.5, 0.1, 1, backend="triton"))(batch)
    torch.testing.assert_close(over, plap.propagate(batch, graph, 1.5, 0.1, 1, backend="dense"))


def test_what_it_cannot_do_is_said() -> None:
    graph = problems.path(3)
    x = problems.features(3, 2)
    with pytest.raises(NotImplementedError, match=r"triton backend of plap\.propagate; use backend='torch'"):
        torch.func.grad(lambda x: plap.propagate(x, graph, 1.5, 0.1, 1, backend="triton").sum())(x)
    result = plap.propagate(x.requires_grad_(), graph, 1.5, 0.1, 1, backend="triton")
    (slope,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives do not exist for the triton backend"):
        slope.sum().backward()


def test_a_penalty_of_ones_own() -> None:
    class Tukey(Penalty):
        def psi(self, nu: Tensor) -> Tensor:
            result: Tensor = torch.clamp(1 - nu / self.gamma**2, min=0) ** 2
            return result

        def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
            result: Tensor = -2 * nu / self.gamma**2 * torch.clamp(1 - nu / self.gamma**2, min=0)
            return result

        def dpsi_dparameter(self, nu: Tensor) -> Tensor:
            result: Tensor = 4 * nu / self.gamma**3 * torch.clamp(1 - nu / self.gamma**2, min=0)
            return result

    check_against_the_oracle("fixture", Tukey(1.5), 1)


def test_indices_of_64_bits() -> None:
    """As graphs of more than 2^31 entries have."""
    problem = problems.fixture()
    wide = replace(problem.graph, indptr=problem.graph.indptr.long(), indices=problem.graph.indices.long())
    x, p, mu = problem.x[None], Power(numbers(1.5)), numbers(0.1)
    assert TRITON.propagate(x, wide, p, mu, 1).equal(TRITON.propagate(x, problem.graph, p, mu, 1))
