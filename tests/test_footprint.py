"""memory_needed tells the budgets that propagate accepts."""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

import plap
import problems
from plap.kernels.registry import choose

BACKENDS = ("fused", "torch")


@pytest.fixture(scope="module")
def graph() -> plap.Graph:
    return problems.random_graph(200, 0.2, seed=1)


def slopes(graph: plap.Graph, backend: Literal["fused", "torch"], budget: int | str | None) -> list[Tensor]:
    x = problems.features(200, 8).requires_grad_()
    mu = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    result = plap.propagate(x, graph, 1.5, mu, 6, backend=backend, memory_budget=budget)
    return [result.detach(), *torch.autograd.grad(result.square().sum(), [x, mu])]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_least_is_accepted_one_byte_less_is_refused_with_what_is_enough(
    graph: plap.Graph, backend: Literal["fused", "torch"]
) -> None:
    shape = (graph.num_nodes, graph.num_entries, 8, 6)
    need = plap.memory_needed(*shape, dtype=torch.float64, backend=backend)
    assert 0 < need.least < need.usual
    with pytest.raises(
        plap.InputError, match="memory_budget is too small: 6 steps on 200 nodes × 8"
    ) as refused:
        slopes(graph, backend, need.least - 1)
    found = re.search(r"need at least (.*)$", str(refused.value))
    assert found is not None
    for budget in (need.least, found[1], need.usual, "1TiB"):
        for result, expected in zip(
            slopes(graph, backend, budget), slopes(graph, backend, None), strict=True
        ):
            torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_inference_needs_less_than_training(graph: plap.Graph, backend: Literal["fused", "torch"]) -> None:
    shape = (graph.num_nodes, graph.num_entries, 8, 6)
    training, inference = (
        plap.memory_needed(*shape, dtype=torch.float64, backend=backend, training=flag)
        for flag in (True, False)
    )
    assert inference.least < training.least
    assert inference.ends * 2 == training.ends
    x = problems.features(200, 8)
    with torch.no_grad():
        plap.propagate(x, graph, 1.5, 0.1, 6, backend=backend, memory_budget=inference.least)
    with pytest.raises(plap.InputError, match="too small"):
        plap.propagate(x.requires_grad_(), graph, 1.5, 0.1, 6, backend=backend, memory_budget=inference.least)


def test_a_device_that_is_not_here_can_be_asked_about() -> None:
    need = plap.memory_needed(10**6, 10**8, 64, device="cuda")
    first = choose("auto", torch.device("cuda"), torch.float32).name
    assert need == plap.memory_needed(10**6, 10**8, 64, device="cuda", backend=first)
    assert need.usual < 2**30 + 7 * 10**6 * 66 * 4  # no array of entries × channels, which is 24 GiB


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"num_nodes": -1}, "num_nodes must be an integer of 0 or more, not -1"),
        ({"channels": 2.5}, "channels must be an integer of 0 or more"),
        ({"K": 0}, "K must be an integer of 1 or more, not 0"),
        ({"runs": True}, "runs must be an integer"),
        ({"dtype": torch.float16}, "dtype must be float32 or float64"),
        ({"backend": "dense"}, "backend must be one of auto, fused, triton, torch"),
    ],
)
def test_refuses_by_name(changed: dict[str, Any], sentence: str) -> None:
    arguments: dict[str, Any] = {"num_nodes": 10, "num_entries": 20, "channels": 3} | changed
    with pytest.raises(plap.InputError, match=sentence):
        plap.memory_needed(**arguments)
