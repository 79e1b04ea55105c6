"""Theorem 4: its terms against a loop over the formula, and where it holds."""

from __future__ import annotations

import math

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import plap
from plap.insight import risk_bound


def regular(n: int, degree: int, seed: int) -> plap.Graph:
    return plap.Graph.from_networkx(nx.random_regular_graph(degree, n, seed=seed))


def draw(n: int, seed: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x, noise = torch.randn(2, n, 3, generator=generator, dtype=torch.float64)
    return scale * x, 0.1 * noise, torch.randn(3, generator=generator, dtype=torch.float64)


class Dense:
    """M, α, β and F of every step as the paper writes them."""

    def __init__(self, graph: plap.Graph, x: Tensor, p: float, mu: float, K: int) -> None:
        n = graph.num_nodes
        W = torch.zeros(n, n, dtype=torch.float64)
        W[graph.receivers(), graph.indices.long()] = graph.weight.double()
        self.d = float(W.sum(1)[0])
        self.F, self.M, self.alpha, self.beta = [x], [], [], []
        for _ in range(K):
            F = self.F[-1]
            norm = (W / self.d).sqrt() * torch.cdist(F, F, compute_mode="donot_use_mm_for_euclid_dist")
            M = torch.where(W > 0, W * norm.clamp(min=1e-300) ** (p - 2), 0)
            alpha = 1 / (M.sum(1) / self.d + 2 * mu / p)
            beta = 2 * mu / p * alpha
            self.M.append(M)
            self.alpha.append(alpha)
            self.beta.append(beta)
            self.F.append(alpha[:, None] * (M @ F) / self.d + beta[:, None] * x)

    def laplacian(self, k: int, f: Tensor) -> Tensor:
        return (self.M[k].sum(1)[:, None] * f - self.M[k] @ f) / self.d


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("K", [1, 2, 4])
def test_every_term_is_the_formula(p: float, K: int) -> None:
    graph, (x, noise, w) = regular(12, 4, 0), draw(12, 1)
    mu, L = 0.3, float(w.norm())

    def sigma(rows: Tensor) -> Tensor:
        return torch.tanh(rows @ w)

    dense = Dense(graph, x, p, mu, K)
    y, alpha, beta = sigma(x + noise), dense.alpha[-1], dense.beta[-1]
    M, F = dense.M[-1] / dense.d, dense.F[K - 1]
    predicted = alpha * (M @ sigma(F)) + beta * sigma(x)
    printed = dense.laplacian(K - 1, F)
    for k in range(K - 1):
        product = torch.ones(12, dtype=torch.float64)
        for step in range(k, K - 1):
            product = product * dense.M[step].sum(1) / dense.d
        printed = printed + product[:, None] * dense.laplacian(k, x)
    diffusion = {
        "lipschitz": alpha * (M * torch.cdist(x, F)).sum(1),
        "affine": alpha * (M @ F - M.sum(1)[:, None] * x).norm(dim=1),
        "printed": alpha * printed.norm(dim=1),
    }
    for form, expected in diffusion.items():
        found = risk_bound(x, noise, sigma, L, graph, p, mu, K, form=form)  # type: ignore[arg-type]
        assert found.risk == pytest.approx(float((y - predicted).abs().mean()), rel=1e-9)
        assert found.features == pytest.approx(float((beta * (y - sigma(x)).abs()).mean()), rel=1e-9)
        assert found.diffusion == pytest.approx(L * float(expected.mean()), rel=1e-9)
        assert found.noise == pytest.approx(L * float(((1 - beta) * noise.norm(dim=1)).mean()), rel=1e-9)
        assert found.bound == pytest.approx(found.features + found.diffusion + found.noise)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1000), st.sampled_from([2, 3, 4]), st.sampled_from([1.0, 1.3, 2.0, 2.5, 3.0]),
    st.sampled_from([0.01, 0.1, 1.0, 10.0]), st.integers(1, 5), st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from([torch.tanh, torch.abs, torch.relu, torch.sin]),
)  # fmt: skip
def test_it_holds_for_every_lipschitz_function_and_affine_ones(
    seed: int, degree: int, p: float, mu: float, K: int, scale: float, shape: object
) -> None:
    graph, (x, noise, w) = regular(12, degree, seed), draw(12, seed, scale)
    L = float(w.norm())
    assert risk_bound(x, noise, lambda rows: shape(rows @ w), L, graph, p, mu, K).holds  # type: ignore[operator]
    assert risk_bound(x, noise, lambda rows: rows @ w + 3, L, graph, p, mu, K, form="affine").holds


def test_as_printed_it_fails_even_for_an_affine_function() -> None:
    graph, (x, _, w) = regular(12, 4, 0), draw(12, 0, 10.0)
    arguments = (x, torch.zeros_like(x), lambda rows: rows @ w, float(w.norm()), graph, 1.0, 0.01, 2)
    printed, corrected = (risk_bound(*arguments, form=form) for form in ("printed", "affine"))
    assert printed.risk > 1.5 * printed.bound
    assert corrected.holds
    once = risk_bound(*arguments[:-1], 1, form="printed")
    assert once.holds
    assert once == risk_bound(*arguments[:-1], 1, form="affine")


def test_the_norm_outside_of_the_sum_fails_for_a_bent_function() -> None:
    ring = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])
    x = torch.tensor([[0.0], [1.0], [0.0], [-1.0]], dtype=torch.float64)

    def size(rows: Tensor) -> Tensor:
        return rows.abs().sum(1)

    found = risk_bound(x, torch.zeros_like(x), size, 1.0, ring, 2.0, 0.1, 1, form="affine")
    assert not found.holds
    assert found.risk == pytest.approx(1 / 1.1)
    assert found.bound == pytest.approx(0.5 / 1.1)
    assert risk_bound(x, torch.zeros_like(x), size, 1.0, ring, 2.0, 0.1, 1).holds


def test_a_large_mu_leaves_the_risk_of_the_features_alone() -> None:
    graph, (x, noise, w) = regular(12, 4, 0), draw(12, 1)
    found = risk_bound(x, noise, lambda rows: rows @ w, float(w.norm()), graph, 2.0, 1e9, 4)
    alone = float((noise @ w).abs().mean())
    assert math.isclose(found.risk, alone, rel_tol=1e-6)
    assert math.isclose(found.features, alone, rel_tol=1e-6)
    assert found.diffusion + found.noise < 1e-6


def test_refusals() -> None:
    x = torch.zeros(3, 1, dtype=torch.float64)
    path = plap.Graph.from_edges([(0, 1), (1, 2)])
    ring = plap.Graph.from_edges([(0, 1), (1, 2), (2, 0)])

    def total(rows: Tensor) -> Tensor:
        return rows.sum(1)

    for graph, arguments, sentence in (
        (path, {}, "regular, but its degrees range from 1 to 2"),
        (ring, {"form": "other"}, "form must be one of lipschitz, affine, printed"),
        (ring, {"lipschitz": -1.0}, "lipschitz must be a finite number of at least 0"),
        (ring, {"noise": x[:2]}, "of one shape"),
        (ring, {"sigma": lambda rows: rows}, "one value per node"),
        (ring, {"sigma": lambda rows: 1.0}, "sigma must return one value per node, not 1.0"),
        (ring, {"sigma": 3}, "sigma must be a function of a tensor, not 3"),
        (ring, {"K": 0}, "K must be an integer of 1 or more, not 0"),
        (ring, {"K": 1.5}, "K must be an integer of 1 or more, not 1.5"),
        (ring, {"K": None}, "K must be an integer of 1 or more, not None"),
        (ring, {"p": None}, "p must be a finite number of at least 1, not None"),
        (ring, {"mu": 0}, "mu must be a positive finite number, not 0"),
        (ring.edge_index, {}, "graph must be a plap.Graph, not Tensor"),
        (plap.Graph.from_edges([], num_nodes=0), {"x": x[:0], "noise": x[:0]}, "at least one node"),
        (ring, {"noise": x + torch.nan}, r"noise\[0, 0\] = nan is not finite"),
        (ring, {"noise": x.numpy()}, "x and noise must be float64 tensors"),
        (ring, {"x": x[:2], "noise": x[:2]}, "x has 2 rows but graph has 3 nodes"),
    ):
        given = {"x": x, "noise": x, "sigma": total, "lipschitz": 1.0, "graph": graph, "p": 2.0, "mu": 0.1}
        with pytest.raises(plap.InputError, match=sentence):
            risk_bound(**(given | arguments))  # type: ignore[arg-type]
