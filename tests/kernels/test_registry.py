"""Choosing a backend, and writing one: the worked example of the contributors' guide."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import plap
import problems
from plap.kernels import registry
from plap.kernels.backend import Backend, Capabilities
from plap.kernels.budget import Shape, Way
from plap.kernels.dense import DENSE, Dense
from plap.kernels.fused.backend import FUSED
from plap.kernels.registry import choose, propagate_unchecked
from plap.kernels.torch.backend import TORCH
from plap.kernels.triton.backend import TRITON
from plap.penalties import Power

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def section(title: str) -> list[str]:
    """The Python of a section of the guide."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return re.findall(r"```python\n(.*?)```", found[1], re.DOTALL)


def test_auto_takes_the_first_that_serves_the_call() -> None:
    assert choose("auto", CPU, torch.float32) is FUSED
    assert choose("auto", CPU, torch.float64, bounded=True) is FUSED
    assert choose("auto", GPU, torch.float32) is (TORCH if TRITON.capabilities.missing else TRITON)
    assert choose("auto", GPU, torch.float32, "published") is TORCH
    assert choose("auto", torch.device("meta"), torch.float32) is TORCH
    assert choose("auto", CPU, torch.float32, "published") is TORCH


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("other", CPU, torch.float32), "backend must be one of auto, fused, triton, torch, dense, not"),
        (("fused", GPU, torch.float32), "backend 'fused' needs x on the CPU, not on cuda:0"),
        (
            ("dense", CPU, torch.float32, "published"),
            "variant 'published' needs backend 'torch', not 'dense'",
        ),
        (("torch", CPU, torch.float16), "backend 'torch' needs x of type torch.float32 or torch.float64"),
        (("auto", CPU, torch.float16), "no backend serves x of type torch.float16 on cpu"),
        ((3, CPU, torch.float32), "backend must be a name or a plap.kernels.backend.Backend, not 3"),
    ],
)
def test_refuses_in_a_sentence(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(plap.InputError, match=re.escape(sentence)):
        choose(*arguments)


def test_a_backend_whose_package_is_missing_is_left_out_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = replace(TRITON.capabilities, missing="backend 'triton' needs the package triton")
    monkeypatch.setattr(type(TRITON), "capabilities", missing)
    assert choose("auto", GPU, torch.float32) is TORCH
    with pytest.raises(plap.InputError, match="backend 'triton' needs the package triton"):
        choose("triton", GPU, torch.float32)


def test_every_backend_that_promises_a_budget_tells_its_memory() -> None:
    shape = Shape(1, 100, 8, 1000, 4, 4)
    for backend in registry.BACKENDS:
        assert isinstance(backend, Backend)
        for training in (False, True):
            sizes = [way.size for way in backend.ways(shape, training=training)]
            assert bool(sizes) == backend.capabilities.memory_budget
            assert sizes == sorted(sizes, reverse=True)


def test_another_device_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training and memory_needed find a backend for a new device once it is in the list."""

    class Elsewhere(Dense):
        name = "elsewhere"
        capabilities = replace(
            Capabilities(devices=None), devices=frozenset({"cpu", "cuda"}), memory_budget=True
        )

        def ways(self, shape: Shape, *, training: bool) -> list[Way]:
            return [Way(1, 0, 12345)]

    monkeypatch.setattr(registry, "BACKENDS", (Elsewhere(), FUSED, TORCH, DENSE))
    problem = problems.fixture()
    p, mu = torch.tensor([1.5], dtype=torch.float64), torch.tensor([0.1], dtype=torch.float64)
    result = propagate_unchecked(problem.x[None], problem.graph, p, mu, 3)
    assert result.equal(DENSE.propagate(problem.x[None], problem.graph, Power(p), mu, 3))
    assert plap.memory_needed(10, 20, 3, device="cuda").usual == 12345
    assert plap.propagate(problem.x, problem.graph, 1.5, 0.1, 3).equal(result[0])


def test_unchecked_is_what_propagate_computes() -> None:
    problem = problems.fixture()
    p, mu = torch.tensor([1.5], dtype=torch.float64), torch.tensor([0.1], dtype=torch.float64)
    result = propagate_unchecked(problem.x[None], problem.graph, p, mu, 3)
    assert result[0].equal(plap.propagate(problem.x, problem.graph, 1.5, 0.1, 3))


def test_the_worked_example_is_a_backend() -> None:
    names: dict[str, Any] = {}
    for block in section("Add a backend"):
        exec(block, names)
    example = names["TEXTBOOK"]
    assert isinstance(example, Backend)
    for make in problems.GENERIC.values():
        problem = make()
        for eps in (None, 0.4):
            x = problem.x.clone().requires_grad_()
            slopes = []
            for backend in (example, "dense"):
                result = plap.propagate(x, problem.graph, 1.5, 0.2, 3, eps=eps, omega=0.8, backend=backend)
                slopes.append((result, *torch.autograd.grad(result.square().sum(), x)))
            for got, wanted in zip(*slopes, strict=True):
                torch.testing.assert_close(got, wanted)


def test_the_worked_example_is_a_penalty() -> None:
    names: dict[str, Any] = {}
    for block in section("Add a penalty"):
        exec(block, names)
    assert names["gamma"].grad.abs() > 1e-3
    assert names["info"].converged
    assert not names["info"].convex
    assert FUSED.refuses(names["penalty"]) is None
