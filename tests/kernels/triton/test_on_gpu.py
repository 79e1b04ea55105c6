"""What only a GPU shows: the compiled kernels against the oracle, hubs, memory, torch.compile."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

import plap
import problems
from plap.kernels.dense import DENSE
from plap.kernels.torch.backend import TORCH
from plap.kernels.triton.backend import TRITON
from plap.penalties import Penalty, Power
from plap.training import RunConfig, train_runs

pytest.importorskip("triton", reason="the extra 'gpu' is not installed")

import gpu
import gpu_oracle

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: see plap bench gpu")

GPU = torch.device("cuda")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("penalty", gpu_oracle.PENALTIES, ids=repr)
def test_every_problem_is_the_oracles(penalty: Penalty, dtype: torch.dtype) -> None:
    of_values, of_slopes = gpu.LIMITS[dtype]
    for name in problems.PROBLEMS:
        found = gpu_oracle.errors(TRITON, name, penalty, GPU, dtype)
        assert found.values <= of_values, name
        if dtype == torch.float64 or name not in problems.DEGENERATE:
            assert found.slopes <= (gpu.VAGUE if gpu_oracle.vague(name, penalty) else of_slopes), name


def test_a_star_of_a_hundred_thousand_leaves() -> None:
    problem = problems.Problem(problems.star(100_000), problems.features(100_001, 16))
    results = [
        gpu_oracle.outcome(backend, problem, Power(1.5), 2, GPU, torch.float64)
        for backend in (TRITON, TRITON, TORCH)
    ]
    for once, again, expected in zip(*results, strict=True):
        assert once.equal(again)  # no atomics: bit for bit
        torch.testing.assert_close(once, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("runs", [1, 3])
def test_memory_is_what_was_said_and_a_budget_is_kept(runs: int) -> None:
    made = problems.random_graph(2000, 0.02, seed=1)
    graph = problems.per_entry_weight(made, made.weight.float()).to(GPU)
    x = torch.randn(runs, 2000, 64, device=GPU, requires_grad=True)

    def step(budget: int | None) -> list[Tensor]:
        x.grad = None
        plap.propagate(
            x, graph, 1.5, 0.1, 10, backend="triton", memory_budget=budget
        ).square().sum().backward()
        assert x.grad is not None
        return [x.grad.clone()]

    step(None)
    need = plap.memory_needed(2000, graph.num_entries, 64, 10, runs=runs, device=GPU, backend="triton")
    peaks = {budget: gpu.peak_bytes(partial(step, budget), GPU) for budget in (None, need.least)}
    for budget, said in ((None, need.usual), (need.least, need.least)):
        taken = peaks[budget]
        assert taken is not None
        assert taken <= 1.1 * said + need.ends + 2**20  # PyTorch rounds each array up
    assert step(need.least)[0].equal(step(None)[0])


def test_compiled_and_exported_programs() -> None:
    graph = problems.random_graph(50, 0.2, seed=1).to(GPU)
    x = problems.features(50, 8).to(GPU)

    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return plap.propagate(x.relu(), graph, 1.5, 0.1, 3, backend="triton")

    model = Model()
    expected = DENSE.propagate(
        x.relu().cpu()[None], graph.to("cpu"), Power(torch.tensor([1.5])), torch.tensor([0.1]), 3
    )[0]
    compiled = torch.compile(model, fullgraph=True)
    for program in (model, compiled, torch.export.export(model, (x,)).module()):
        torch.testing.assert_close(program(x).cpu(), expected)


def test_a_gpu_that_is_too_small_halves_the_batch_and_says_so() -> None:
    data = plap.data.csbm(phi=0.5, n=2000, f=100, seed=0)
    configs = [RunConfig(hidden=256, max_epochs=2, seed=seed) for seed in range(16)]
    parts = plap.data.split(data, seed=0)
    torch.cuda.reset_peak_memory_stats(GPU)
    expected = train_runs(data.graph, data.x, data.y, configs, parts, device=GPU)
    needed = torch.cuda.max_memory_reserved(GPU)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(GPU).total_memory
    torch.cuda.set_per_process_memory_fraction(0.75 * needed / total, GPU)
    try:
        with pytest.warns(UserWarning, match="ran out of memory with 16 runs at a time; going on with 8"):
            found = train_runs(data.graph, data.x, data.y, configs, parts, device=GPU, memory_budget="64GiB")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, GPU)
    for got, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(got.logits, wanted.logits, rtol=1e-3, atol=1e-3)
