"""What message passing does to frequencies: exact for p = 2, and honest about p ≠ 2."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import plap
import problems
import spectral_graphs
from plap.graph import Graph
from plap.nn.baselines import normalized_adjacency
from plap.spectral import filter_response, linear_gain, response_curves, spectrum, transfer
from plap.spectral.frequencies import frequency_bins


def noise(graph: Graph, channels: int = 6) -> torch.Tensor:
    return problems.features(graph.num_nodes, channels, seed=5)


@pytest.mark.parametrize(("K", "omega"), [(1, 1.0), (2, 1.0), (5, 1.0), (4, 0.5), (3, 1.3), (200, 1.0)])
@pytest.mark.parametrize("mu", [0.1, 2.0])
@pytest.mark.parametrize("make", [problems.star, problems.complete])
def test_p_2_has_the_closed_form(make: object, K: int, omega: float, mu: float) -> None:
    """Stars have the frequencies 0, 1, 2, complete graphs 0 and n/(n − 1): no bin holds two."""
    graph = make()  # type: ignore[operator]
    found = filter_response(noise(graph), graph, 2, mu, K, omega=omega)
    there = ~np.isnan(found.gain)
    np.testing.assert_allclose(
        found.gain[there], linear_gain(np.unique(spectrum(graph).values.round(9)), mu, K, omega), atol=1e-12
    )
    np.testing.assert_allclose(found.coherence[there], 1)


def test_gain_goes_to_the_solution() -> None:
    frequency = np.linspace(0, 2, 9)
    np.testing.assert_allclose(linear_gain(frequency, 0.3, 500), 0.3 / (0.3 + frequency), atol=1e-12)
    np.testing.assert_allclose(linear_gain(frequency, 0.3, 0), 1)


@settings(max_examples=20, deadline=None)
@given(problems.graphs_with_features(), st.sampled_from([1.0, 1.5, 2.0, 2.5]))
def test_energies_add_up(problem: problems.Problem, p: float) -> None:
    x = problem.x
    if not x.any():
        return
    found = filter_response(x, problem.graph, p, 0.5, 3)
    y = plap.propagate(x, problem.graph, p, 0.5, 3)
    assert found.input_energy.sum() == pytest.approx(1)
    assert found.output_energy.sum() == pytest.approx(1)
    assert found.amplification == pytest.approx(float(y.norm() / x.norm()))
    bands = found.output_bands
    assert bands.low + bands.mid + bands.high == pytest.approx(1)
    assert np.nanmax(found.coherence) <= 1
    assert np.nanmin(found.input_energy) >= 0


@pytest.mark.parametrize("p", [1.5, 2.0])
def test_moments_find_what_eigenvectors_find(p: float) -> None:
    graph = problems.random_graph(300, 0.03, seed=2)
    x = noise(graph, 16)
    exact = filter_response(x, graph, p, 0.1, bins=15, method="exact")
    moments = filter_response(x, graph, p, 0.1, bins=15, method="chebyshev")
    np.testing.assert_allclose(moments.input_energy, exact.input_energy, atol=0.01)
    np.testing.assert_allclose(moments.output_energy, exact.output_energy, atol=0.01)
    many = exact.input_energy > 0.02
    np.testing.assert_allclose(moments.gain[many], exact.gain[many], atol=0.02)
    assert moments.kind == exact.kind


def test_moments_leave_a_frequency_in_its_bin() -> None:
    """Jackson's kernel: nothing negative, and next to nothing two bins away."""
    graph = spectral_graphs.cycle(60)
    pairs = spectrum(graph)
    for k in (5, 30, 51):
        x = pairs.vectors[:, k : k + 1]
        energy = frequency_bins(graph, 21, "chebyshev").energies(x, x).xx
        assert energy.min() > -1e-12
        home = int(pairs.values[k] * 21 / 2)
        assert energy[max(home - 1, 0) : home + 2].sum() > 0.999
        assert energy.sum() == pytest.approx(1)


def test_large_graphs_need_no_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(graph: Graph) -> None:
        raise AssertionError("all eigenvectors of a large graph were asked for")

    graph = problems.grid(60, 60)
    monkeypatch.setattr("plap.spectral.frequencies.spectrum", refuse)
    found = filter_response(noise(graph, 2), graph, 2, 0.1, 2)
    assert found.input_energy.sum() == pytest.approx(1)
    assert found.kind == "low-high-pass"


def test_steps_and_damping_choose_the_filter() -> None:
    graph = problems.random_graph(200, 0.03, seed=4)
    x = noise(graph)
    kinds = {
        (K, omega): filter_response(x, graph, 2, 0.1, K, omega=omega).kind
        for K, omega in [(1, 1.0), (4, 1.0), (100, 1.0), (4, 0.5)]
    }
    assert kinds == {
        (1, 1.0): "low-high-pass",
        (4, 1.0): "low-high-pass",
        (100, 1.0): "low-pass",
        (4, 0.5): "low-pass",
    }
    high = [filter_response(x, graph, 2, 0.1, K).band_gains.high for K in (2, 4, 8, 16, 100)]
    assert high == sorted(high, reverse=True)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.5])
def test_other_p_are_not_filters_and_depend_on_the_scale(p: float) -> None:
    graph = problems.random_graph(120, 0.05, seed=6)
    x = noise(graph)
    found = filter_response(x, graph, p, 0.1)
    assert np.nanmin(found.coherence) < 0.99
    # F(cx; mu c^(p−2)) = c F(x; mu)
    scaled = filter_response(10 * x, graph, p, 0.1 * 10 ** (p - 2))
    np.testing.assert_allclose(scaled.gain, found.gain, rtol=1e-8)
    other = filter_response(10 * x, graph, p, 0.1)
    assert np.nanmax(np.abs(other.gain - found.gain)) > 0.01


def test_baselines_on_a_regular_graph() -> None:
    """There D̂^-1/2 (W + I) D̂^-1/2 = I − d/(d + 1) Δ_2."""
    graph = spectral_graphs.cycle(9)
    curves = response_curves(noise(graph), graph)
    frequency = np.unique((1 - np.cos(2 * np.pi * np.arange(9) / 9)).round(9))
    factor = 1 - 2 / 3 * frequency
    appnp = np.ones_like(factor)
    for _ in range(10):
        appnp = 0.9 * factor * appnp + 0.1
    for name, expected in (("GCN", factor**2), ("APPNP", appnp)):
        gain = curves[name].gain
        np.testing.assert_allclose(gain[~np.isnan(gain)], expected, atol=1e-9)
    assert list(curves) == ["p = 1", "p = 1.5", "p = 2", "p = 2.5", "GCN", "APPNP"]
    assert normalized_adjacency(graph).shape == (9, 9)


def test_transfer_sees_any_filter() -> None:
    graph = problems.path(5)
    x = np.eye(5)
    high = transfer(x, plap.p_laplacian(torch.eye(5), graph, 2), graph)
    assert high.kind == "high-pass"
    there = ~np.isnan(high.gain)
    np.testing.assert_allclose(high.gain[there], spectrum(graph).values, atol=1e-6)
    band = x - (x - spectral_projection(graph))
    assert transfer(x, band, graph).kind == "mid-pass"


def spectral_projection(graph: Graph) -> np.ndarray:
    """The projection on the frequency 1 of a path of five."""
    vector = spectrum(graph).vectors[:, 2:3]
    return vector @ vector.T


def test_a_constant_signal_has_one_frequency() -> None:
    graph = problems.grid()
    found = filter_response(graph.degree.sqrt(), graph, 1.5, 0.1)
    assert found.input_energy[0] == pytest.approx(1)
    assert found.gain[0] == pytest.approx(1)
    assert np.isnan(found.gain[1:]).all()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_any_scale(scale: float) -> None:
    graph = problems.random_graph(20, 0.3, seed=1)
    found = filter_response(scale * noise(graph), graph, 2, 0.1)
    expected = filter_response(noise(graph), graph, 2, 0.1)
    np.testing.assert_allclose(found.gain, expected.gain)
    assert found.amplification == pytest.approx(expected.amplification)


def test_takes_what_tensors_there_are() -> None:
    graph = problems.path(5)
    expected = filter_response(torch.arange(5.0), graph, 1.5, 0.1).gain
    weight = torch.ones(4, dtype=torch.float64, requires_grad=True)
    learnt = Graph.from_edge_index(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]), weight)
    for x in (
        range(5),
        torch.arange(5),
        torch.arange(5.0, dtype=torch.bfloat16),
        torch.arange(5.0).requires_grad_(),
    ):
        np.testing.assert_allclose(filter_response(x, learnt, 1.5, 0.1).gain, expected)
        np.testing.assert_allclose(response_curves(x, learnt)["p = 1.5"].gain, expected)


def test_refuses_what_is_no_signal() -> None:
    graph = problems.path(5)
    with pytest.raises(plap.InputError, match=r"x must have shape \[5\] or \[5, C\], not \[4, 2\]"):
        filter_response(np.ones((4, 2)), graph, 2, 0.1)
    with pytest.raises(plap.InputError, match="x is 0 everywhere"):
        filter_response(np.zeros(5), graph, 2, 0.1)
    with pytest.raises(plap.InputError, match="y is 0 everywhere"):
        transfer(np.ones(5), np.zeros(5), graph)
    with pytest.raises(plap.InputError, match="p must be a sequence"):
        response_curves(np.ones(5), graph, p=1.5)  # type: ignore[arg-type]
    with pytest.raises(plap.InputError, match=r"x\[2\] = nan is not finite"):
        filter_response([0, 1, float("nan"), 1, 1], graph, 2, 0.1)
    with pytest.raises(plap.InputError, match="dense"):
        filter_response(torch.eye(5).to_sparse(), graph, 2, 0.1)
    with pytest.raises(plap.InputError, match="real numbers"):
        filter_response(["a"] * 5, graph, 2, 0.1)
    with pytest.raises(plap.InputError, match="shape of x"):
        transfer(np.ones((5, 2)), np.ones((5, 3)), graph)
    with pytest.raises(plap.InputError, match="multiple of 3"):
        filter_response(np.ones(5), graph, 2, 0.1, bins=10)
    with pytest.raises(plap.InputError, match="exact, chebyshev"):
        frequency_bins(graph, 9, "lanczos")  # type: ignore[arg-type]
    with pytest.raises(plap.InputError, match="mu must be"):
        filter_response(np.ones(5), graph, 2, -1)
