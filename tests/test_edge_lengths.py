"""Lengths that the data gives: quantiles as γ, and the unit of γ and μ."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import plap
from plap.edge_lengths import typical_edge_norm
from plap.penalties import BUILT_IN, MCP, Huber, Penalty, Power, Quantile
from problems import GENERIC

PROBLEM = GENERIC["random"]()
GRAPH, X = PROBLEM.graph, PROBLEM.x
LENGTHS = [kind for kind in BUILT_IN if kind.is_length]
every_length = pytest.mark.parametrize("kind", LENGTHS, ids=lambda kind: kind.__name__)


def norms(x: torch.Tensor, graph: plap.Graph) -> torch.Tensor:
    return torch.sort(torch.linalg.vector_norm(plap.gradient(x, graph), dim=1)).values


def test_edge_norms_of_runs_and_of_degenerate_graphs() -> None:
    graph = plap.Graph.from_edges([(0, 1), (1, 2)], num_nodes=4)
    x = torch.tensor([[0.0], [0.0], [4.0], [9.0]])
    for quantile in (0.0, 0.5, 1.0):
        expected = norms(x, graph)[round(quantile * 3)]
        assert float(typical_edge_norm(x, graph, quantile)) == pytest.approx(float(expected) or 4.0)
    stacked = typical_edge_norm(torch.stack([x, 3 * x]), graph, 1.0)
    assert stacked.tolist() == pytest.approx([4.0, 12.0])
    assert float(typical_edge_norm(x, plap.Graph.from_edges([], num_nodes=4))) == 1.0
    assert float(typical_edge_norm(torch.ones_like(x)[:2], plap.Graph.from_edges([(0, 1)]))) == 1.0


def test_a_loop_has_no_length() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    loops = plap.Graph.from_edges([*edges, *((k, k) for k in range(4))], self_loops="keep")
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    lengths = norms(x, loops)
    lengths = lengths[lengths > 0]
    for share in (0.1, 0.5, 0.9):
        expected = lengths[round(share * (lengths.numel() - 1))]
        assert float(typical_edge_norm(x, loops, share)) == pytest.approx(float(expected))


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(torch.float32, 1e20), (torch.float32, 1e-20), (torch.float64, 1e160), (torch.float64, 1e-160)],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_lengths_follow_any_scale(dtype: torch.dtype, scale: float, sparse: bool) -> None:
    x = X.to(dtype).clone()
    if sparse:  # most edges have no length
        x[3:] = 0
    small, large = typical_edge_norm(x, GRAPH, 0.3), typical_edge_norm(scale * x, GRAPH, 0.3)
    assert float(large) / scale == pytest.approx(float(small), rel=1e-5)
    for how in ({"penalty": MCP("auto")}, {"p": 1.5}):
        after = plap.propagate(1000 * x, GRAPH, mu=0.1, unit="auto", **how) / 1000
        before = plap.propagate(x, GRAPH, mu=0.1, unit="auto", **how)
        torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-5)


@every_length
def test_a_quantile_is_measured_where_it_is_used(kind: type[Penalty]) -> None:
    sorted_norms = norms(X, GRAPH)
    last = float(sorted_norms[round(0.7 * (len(sorted_norms) - 1))])
    gamma = 0.9 * (last + float(sorted_norms[sorted_norms > last * (1 + 1e-6)][0])) / 2
    known, measured = kind(gamma), kind(Quantile(0.7, times=0.9))
    assert float(measured.measured(X, GRAPH).parameter) == pytest.approx(gamma)
    torch.testing.assert_close(
        plap.propagate(X, GRAPH, penalty=measured, mu=0.2),
        plap.propagate(X, GRAPH, penalty=known, mu=0.2),
    )
    solved = [plap.solve(X, GRAPH, penalty=penalty, mu=0.2)[0] for penalty in (measured, known)]
    torch.testing.assert_close(solved[0], solved[1])
    f = X.flip(0)
    assert float(plap.objective(f, X, GRAPH, penalty=measured, mu=0.2)) == pytest.approx(
        float(plap.objective(f, X, GRAPH, penalty=known, mu=0.2))
    )


def test_one_column_is_measured_like_a_matrix_of_one() -> None:
    assert MCP("auto").measured(X[:, 0], GRAPH).gamma == MCP("auto").measured(X[:, :1], GRAPH).gamma


def test_auto_is_a_quantile_and_every_run_has_its_own() -> None:
    stacked = torch.stack([X, 3 * X])
    result = plap.propagate(stacked, GRAPH, penalty=MCP("auto"), mu=0.2, unit="auto")
    torch.testing.assert_close(
        result[0], plap.propagate(X, GRAPH, penalty=MCP(Quantile(0.75)), mu=0.2, unit="auto")
    )
    torch.testing.assert_close(result[1], 3 * result[0])


@pytest.mark.parametrize("penalty", [Power(1.3), *(kind(0.8) for kind in LENGTHS), MCP("auto")], ids=repr)
def test_a_unit_of_the_data_makes_the_scale_irrelevant(penalty: Penalty) -> None:
    def states(x: torch.Tensor) -> torch.Tensor:
        return plap.propagate(x, GRAPH, penalty=penalty, mu=0.3, K=3, unit="auto")

    torch.testing.assert_close(states(7 * X), 7 * states(X))
    unit = float(typical_edge_norm(X, GRAPH))
    torch.testing.assert_close(
        states(X), plap.propagate(X, GRAPH, penalty=penalty, mu=0.3, K=3, unit=unit), rtol=1e-10, atol=1e-10
    )


def test_a_measured_length_is_a_constant_in_the_backward_pass() -> None:
    """The gradient is that at γ as a number."""
    gradients = []
    for penalty in (MCP("auto"), MCP(float(Quantile(0.75).measure(X, GRAPH)))):
        x = X.clone().requires_grad_()
        plap.propagate(x, GRAPH, penalty=penalty, mu=0.2).square().sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("penalty", [{"p": 1.3}, {"penalty": MCP(2.0)}, {"penalty": Huber("auto")}], ids=str)
def test_a_layer_in_units_of_its_input_commutes_with_the_scale(penalty: dict[str, Any]) -> None:
    conv = plap.nn.PLaplacianConv(X.shape[1], 2, mu=0.2, K=3, bias=False, unit="auto", **penalty).double()
    torch.testing.assert_close(conv(7 * X, GRAPH), 7 * conv(X, GRAPH))
    _, (_, weights) = conv(X, GRAPH, return_aggregation_weights=True)
    _, (_, scaled) = conv(7 * X, GRAPH, return_aggregation_weights=True)
    torch.testing.assert_close(weights, scaled)


def test_a_model_takes_it() -> None:
    model = plap.nn.PGNN(X.shape[1], 4, 2, penalty=MCP(Quantile(0.6)), mu=0.2, unit="auto").double().eval()
    assert "penalty=MCP(gamma=Quantile(0.6))" in repr(model)
    copied = copy.deepcopy(model)
    torch.testing.assert_close(model(X, GRAPH), copied(X, GRAPH))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: MCP("q0.7"), "gamma must be a positive number, a Quantile or 'auto', not 'q0.7'"),
        (lambda: Power("auto"), "p must be"),  # type: ignore[arg-type]
        (lambda: Quantile(1.5), "the share of a quantile must be"),
        (lambda: Quantile(0.5, times=0), "times must be"),
        (lambda: plap.energy(X, GRAPH, penalty=MCP("auto")), r"gamma is Quantile\(0.75\) of the edge norms"),
        (lambda: MCP("auto").psi(X), "penalty.measured"),
        (lambda: plap.propagate(X, GRAPH, p=1.5, mu=1, unit="median"), "unit must be a positive"),  # type: ignore[arg-type]
        (lambda: plap.propagate(X, GRAPH, p=1.5, mu=1, unit=0), "unit must be"),
        (lambda: plap.nn.PLaplacianConv(3, 2, penalty=MCP("auto"), learn_gamma=True), "learn_gamma needs"),
    ],
)
def test_bad_input_is_one_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        call()


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("how", [{"unit": "auto"}, {"penalty": MCP(Quantile(0.5))}], ids=str)
def test_measured_lengths_compile_and_go_through_vmap(how: dict[str, Any], loops: bool) -> None:
    how = {"penalty": MCP(1.0), **how}
    looped = torch.cat([GRAPH.edge_index, torch.tensor([[1, 2], [1, 2]])], 1)
    graph = plap.Graph.from_edge_index(looped) if loops else GRAPH

    def call(x: torch.Tensor) -> torch.Tensor:
        return plap.propagate(x, graph, mu=0.5, K=2, backend="torch", **how)

    expected = call(X)
    compiled = torch.compile(call, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(X), expected)
    both = torch.func.vmap(call)(torch.stack([X, 2 * X]))
    torch.testing.assert_close(both, torch.stack([expected, call(2 * X)]))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("kind", [MCP, Huber])
def test_no_edge_lies_on_a_quantile_so_backends_have_the_same_gradients(
    kind: type[Penalty], share: float
) -> None:
    torch.manual_seed(0)
    graph = plap.Graph.from_edge_index(torch.randint(0, 40, (2, 120)), num_nodes=40)
    start = torch.randn(40, 5, dtype=torch.float64)
    slopes = []
    for backend in ("torch", "fused"):
        x = start.clone().requires_grad_()
        said = plap.propagate(x, graph, penalty=kind(Quantile(share)), mu=0.2, K=2, backend=backend)
        said.square().sum().backward()
        slopes.append(x.grad)
    torch.testing.assert_close(*slopes, rtol=1e-9, atol=1e-9)
    norms = plap.gradient(start, graph).norm(dim=1)
    length = Quantile(share).measure(start, graph)
    assert float((norms - length).abs().min()) > 1e-7 * float(length)
    assert int((norms <= length).sum()) >= share * (norms.numel() - 2)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"mu": "0.1"}, "mu must be a positive finite number, not '0.1'"),
        ({"mu": -0.1}, "mu must be a positive finite number, not -0.1"),
        ({"mu": True, "unit": 2.0}, "mu must be a positive finite number, not True"),
        ({"mu": torch.tensor(1j)}, "mu must be real, not torch.complex64"),
        ({"mu": 0.1, "penalty": MCP(torch.tensor(-1.0))}, "gamma must be a positive finite number, not -1"),
        ({"mu": 0.1, "penalty": MCP(1e13), "unit": 1.0}, "gamma must be at most 1e+12 in float32, not 1e+13"),
    ],
)
def test_a_unit_does_not_hide_what_was_given(keywords: dict[str, Any], sentence: str) -> None:
    graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    with pytest.raises(plap.errors.InputError, match=re.escape(sentence)):
        plap.propagate(torch.randn(3, 2), graph, **{"penalty": MCP(1.0), "unit": "auto"} | keywords)


def test_numbers_of_numpy_are_numbers() -> None:
    assert repr(MCP(np.float32(0.5))) == "MCP(gamma=0.5)"  # type: ignore[arg-type]
    assert repr(MCP(np.int64(2))) == "MCP(gamma=2)"  # type: ignore[arg-type]
    assert Quantile(torch.tensor(0.5)) == Quantile(0.5)  # type: ignore[arg-type]
