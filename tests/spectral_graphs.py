"""Graphs whose p-eigenvalues are known for every p, and two moons."""

from __future__ import annotations

import networkx as nx
import numpy as np
from sklearn.datasets import make_moons
from sklearn.neighbors import kneighbors_graph

from plap.graph import Graph


def cycle(n: int) -> Graph:
    return Graph.from_networkx(nx.cycle_graph(n))


def hypercube(dimension: int) -> Graph:
    return Graph.from_networkx(nx.hypercube_graph(dimension))


def torus(height: int, width: int) -> Graph:
    return Graph.from_networkx(nx.grid_2d_graph(height, width, periodic=True))


def regular_bipartite_largest(degree: int, p: float) -> float:
    """2^(p−1) d^(1−p/2), of the function ±1 on the two sides."""
    return float(2 ** (p - 1) * degree ** (1 - p / 2))


def star_largest(leaves: int, p: float) -> float:
    """The eigenvalue of the functions that are equal on the leaves: (1 + L^((1−p/2)/(p−1)))^(p−1)."""
    return float((1 + leaves ** ((1 - p / 2) / (p - 1))) ** (p - 1))


def complete_values(n: int, p: float) -> list[float]:
    """All non-zero p-eigenvalues of a complete graph.

    A function a > 0 on α nodes, −b < 0 on β and 0 on the others has one where α a^(p−1) = β b^(p−1).
    """
    x = 1 / (p - 1)
    return sorted(
        (n - alpha - beta + (alpha**x + beta**x) ** (p - 1)) / (n - 1) ** (p / 2)
        for alpha in range(1, n)
        for beta in range(1, n - alpha + 1)
    )


def two_moons(n: int, noise: float, seed: int) -> tuple[Graph, np.ndarray]:
    """Points on two half circles, joined to their 8 nearest by Gaussian weights, and their half circle."""
    points, moon = make_moons(n, noise=noise, random_state=seed)
    distances = kneighbors_graph(points, 8, mode="distance")
    distances.data = np.exp(-np.square(distances.data / np.median(distances.data)))
    return Graph.from_scipy(distances), moon
