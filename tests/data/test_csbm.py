from __future__ import annotations

import math
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from plap.data import csbm, homophily
from plap.data.sampling import rank_pairs, sample_distinct, unrank_pairs
from plap.data.synthetic import _edges
from plap.errors import InputError


@pytest.mark.parametrize("phi", [-1.0, -0.5, 0.0, 0.75, 1.0])
def test_edges_within_and_between_meet_their_expectation(phi: float) -> None:
    n, d = 20_000, 5.0
    data = csbm(phi=phi, n=n, f=4, d=d, seed=3)
    strength = math.sqrt(4.25) * math.sin(phi * math.pi / 2)
    source, target = data.graph.edge_index
    one_way = source < target
    equal = (data.y[source] == data.y[target])[one_way]
    half = n // 2
    for found, pairs, mean_degree in (
        (int(equal.sum()), half * (half - 1), d + strength * math.sqrt(d)),
        (int((~equal).sum()), half * half, d - strength * math.sqrt(d)),
    ):
        expected = pairs * mean_degree / n
        assert abs(found - expected) < 4 * math.sqrt(expected)
    expected_homophily = (1 + strength / math.sqrt(d)) / 2
    assert homophily(data) == pytest.approx(expected_homophily, abs=0.01)


def test_every_pair_is_joined_independently_with_its_own_probability() -> None:
    rng, draws, within, between = np.random.default_rng(0), 20_000, 0.7, 0.2
    joined = np.zeros((draws, 6, 6))
    for k in range(draws):
        i, j = _edges(rng, np.arange(6), within, between)
        np.add.at(joined[k], (np.minimum(i, j), np.maximum(i, j)), 1)
    assert joined.max() == 1
    i, j = np.triu_indices(6, 1)
    samples = joined[:, i, j]
    probability = np.where((i < 3) == (j < 3), within, between)
    deviation = np.sqrt(probability * (1 - probability) / draws)
    assert (np.abs(samples.mean(0) - probability) < 4.5 * deviation).all()
    correlation = np.corrcoef(samples.T) - np.eye(len(i))
    assert np.abs(correlation).max() < 4.5 / math.sqrt(draws)


def test_features_meet_their_expectation() -> None:
    n, f, phi = 5000, 2000, 0.25
    data = csbm(phi=phi, n=n, f=f, seed=1)
    mu = math.sqrt(n / f * 4.25) * math.cos(phi * math.pi / 2)
    sign = (2 * data.y - 1).double()
    x = data.x.double()
    # (1/n) Σ v_i x_i = sqrt(mu/n) u + noise of variance 1/(nf), and |u|² is near 1.
    centre = (sign[:, None] * x).mean(0)
    assert n * float(centre.square().sum()) == pytest.approx(mu + 1, abs=0.4)
    assert float((x - sign[:, None] * centre).var()) * f == pytest.approx(1, abs=0.01)
    assert float(x.mean()) == pytest.approx(0, abs=4 / math.sqrt(n * f * f))


def test_at_phi_one_features_say_nothing() -> None:
    data = csbm(phi=1.0, n=2000, f=500, seed=5)
    centre = ((2 * data.y - 1)[:, None] * data.x).mean(0)
    assert 2000 * float(centre.square().sum()) == pytest.approx(1, abs=0.4)


def test_classes_are_of_equal_size_and_in_random_order() -> None:
    data = csbm(phi=0.0, n=5000, f=2)
    assert data.y.bincount().tolist() == [2500, 2500]
    assert abs(int(data.y[:2500].sum()) - 1250) < 150


def test_pure_function_of_its_arguments() -> None:
    first, again, other = (csbm(phi=0.5, n=200, f=3, seed=seed) for seed in (7, 7, 8))
    assert first.graph.digest == again.graph.digest != other.graph.digest
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.y, again.y)


def test_the_global_generators_are_left_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    csbm(phi=0.5, n=100, f=3)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize(
    "arguments",
    [
        {"phi": 1.5},
        {"phi": float("nan")},
        {"phi": 0.0, "n": 7},
        {"phi": 0.0, "n": 0},
        {"phi": 0.0, "n": 10.0},
        {"phi": 0.0, "f": 0},
        {"phi": 0.0, "d": -1.0},
        {"phi": 0.0, "epsilon": -0.5},
        {"phi": 0.0, "seed": -1},
        {"phi": 1.0, "d": 4.0},
        {"phi": 0.0, "n": 4, "d": 5.0},
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(InputError):
        csbm(**arguments)  # type: ignore[arg-type]


@given(st.integers(0, 10**12))
def test_ranks_of_pairs_are_a_bijection(rank: int) -> None:
    i, j = unrank_pairs(np.array([rank]))
    assert 0 <= i[0] < j[0]
    assert rank_pairs(i, j)[0] == rank


def test_ranks_near_the_limit_of_float64() -> None:
    j = np.array([2**27 - 1, 2**28, 2**31 - 1])
    for i in (np.zeros_like(j), j - 1):
        first, second = unrank_pairs(rank_pairs(i, j))
        assert (first == i).all()
        assert (second == j).all()


@given(st.integers(0, 60), st.data(), st.integers(0, 5))
def test_distinct_samples(population: int, data: st.DataObject, seed: int) -> None:
    size = data.draw(st.integers(0, population))
    sample = sample_distinct(np.random.default_rng(seed), population, size)
    assert sample.size == size
    assert len(set(sample.tolist())) == size
    assert ((sample >= 0) & (sample < population)).all()
    assert (np.sort(sample) == sample).all()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_distinct_samples_are_uniform(size: int) -> None:
    rng, draws = np.random.default_rng(0), 5000
    counts = np.zeros(5)
    for _ in range(draws):
        counts[sample_distinct(rng, 5, size)] += 1
    share = size / 5
    assert (np.abs(counts / draws - share) < 4 * math.sqrt(share * (1 - share) / draws)).all()


@pytest.mark.long
def test_a_million_nodes_take_seconds() -> None:
    start = time.process_time()  # of this process alone, however busy the machine is
    data = csbm(phi=0.5, n=1_000_000, f=16)
    assert time.process_time() - start < 20
    assert data.graph.num_nodes == 1_000_000
