"""Graphs with known answers, and a hypothesis strategy for graphs that break careless arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from plap.graph import Graph

P_VALUES = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0)


@dataclass(frozen=True)
class Problem:
    """A graph and float64 features [N, C] on it."""

    graph: Graph
    x: Tensor


@dataclass(frozen=True)
class Expected:
    """Answers of the fixture for one p, to ten decimals; matrices have four rows of two channels."""

    L_X: float
    L_F1: float
    F1: tuple[float, ...]
    mu_grad: float
    p_grad: float
    L_F4: float | None = None
    L_star: float | None = None
    F4: tuple[float, ...] | None = None
    F_star: tuple[float, ...] | None = None
    F_grad: tuple[float, ...] | None = None
    X_grad: tuple[float, ...] | None = None
    w_grad: tuple[float, ...] | None = None


FIXTURE_MU = 0.1


def fixture() -> Problem:
    """The 4-node problem of numerics §11."""
    graph = weighted([(0, 1, 1.0), (0, 2, 1.5), (1, 2, 2.0), (2, 3, 0.5)], 4)
    return Problem(graph, torch.tensor([[1, 0], [0.5, -1], [2, 1], [-1, 0.25]], dtype=torch.float64))


def fixture_cotangent() -> Tensor:
    """G_ic = 1 + i + c/2, the cotangent that the fixture's gradients belong to."""
    rows = torch.arange(4, dtype=torch.float64)
    return 1 + rows[:, None] + torch.tensor([0, 0.5], dtype=torch.float64)


FIXTURE: dict[float, Expected] = {
    1.0: Expected(
        L_X=4.9679596253,
        L_F1=1.5704505205,
        L_F4=0.5664695721,
        F1=(
            *(1.0853183161, 0.0509238162, 1.2022720822, 0.1095231727),
            *(0.9376615685, -0.0620422293, 0.2720153008, 0.3271606667),
        ),
        mu_grad=-8.6589914348,
        p_grad=1.1436834097,
    ),
    1.5: Expected(
        L_X=5.9169351337,
        L_F1=1.9810411226,
        L_F4=0.5563254040,
        L_star=0.4948059885,
        F1=(
            *(1.1028754945, 0.0753301438, 1.3225691420, 0.2844634897),
            *(0.7327328251, -0.2199639634, 0.4536381731, 0.3381779413),
        ),
        F4=(
            *(0.9688916929, 0.0808748590, 1.0320551104, 0.0471127975),
            *(1.2953317209, 0.2021225945, 0.3265034764, 0.0239216998),
        ),
        F_star=(
            *(0.9122513854, 0.0695712837, 0.9931284753, 0.0648858564),
            *(1.1562439517, 0.0971818731, 0.3748012187, 0.0395621769),
        ),
        F_grad=(
            *(3.2942580391, 4.1751833395, 1.2787378763, 1.4530751276),
            *(2.0199219756, 2.4664175388, 0.8556212951, 0.9235572340),
        ),
        X_grad=(
            *(0.1018170496, 0.1527255744, 0.2580574340, 0.3225717925),
            *(0.3886868538, 0.4534679961, 0.5939138919, 0.6681531284),
        ),
        mu_grad=-5.2504865837,
        p_grad=0.3209592697,
        w_grad=(
            *(-1.0397506501, -0.0372309126, 0.1744396321, 0.9253415307),
            *(-0.0325925106, -1.0311492147, -1.5635118467, 3.9268348885),
        ),
    ),
    2.0: Expected(
        L_X=7.2874218993,
        L_F1=2.6517127254,
        L_star=0.4656535086,
        F1=(
            *(1.1193249854, 0.0992666158, 1.4271353728, 0.4339547902),
            *(0.5540576300, -0.3536017469, 0.5519152556, 0.3441394460),
        ),
        mu_grad=-2.9665799414,
        p_grad=-0.0657475637,
    ),
    2.5: Expected(
        L_X=9.2028232194,
        L_F1=3.6941309441,
        L_F4=0.9042690415,
        L_star=0.4300345200,
        F1=(
            *(1.1350745467, 0.1226744556, 1.5147442991, 0.5582872588),
            *(0.4022665864, -0.4691237556, 0.6086976729, 0.3475838772),
        ),
        F_star=(
            *(0.9431710623, 0.0548825033, 0.9563147386, -0.0536391426),
            *(1.2185947801, 0.1919243457, 0.2194828157, 0.0947608781),
        ),
        F_grad=(
            *(0.5860334767, 0.4538834049, 2.4982586605, 3.1717576545),
            *(3.4292319141, 4.3185153946, 1.2110607180, 1.3047169671),
        ),
        mu_grad=-1.6377598677,
        p_grad=-0.2272354123,
    ),
    3.0: Expected(
        L_X=11.8305762129,
        L_F1=5.3052588768,
        L_star=0.3978326733,
        F1=(
            *(1.1502380503, 0.1454883132, 1.5830096277, 0.6548735139),
            *(0.2815527584, -0.5656803348, 0.6430590621, 0.3496682450),
        ),
        mu_grad=-0.9352801408,
        p_grad=-0.2605319185,
    ),
}


def rows(values: tuple[float, ...] | None) -> Tensor:
    """Expected numbers as a [4, 2] matrix."""
    assert values is not None
    return torch.tensor(values, dtype=torch.float64).reshape(4, 2)


def weighted(edges: list[tuple[int, int, float]], num_nodes: int, *, keep_loops: bool = False) -> Graph:
    """A graph from (i, j, weight) triples, with float64 weights."""
    return Graph.from_edges(
        np.array([(i, j) for i, j, _ in edges], dtype=np.int64).reshape(-1, 2),
        np.array([w for _, _, w in edges], dtype=np.float64),
        num_nodes,
        self_loops="keep" if keep_loops else "drop",
    )


def features(num_nodes: int, channels: int = 3, seed: int = 0) -> Tensor:
    """Gaussian float64 features, no two rows equal."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_nodes, channels, generator=generator, dtype=torch.float64)


def random_graph(n: int, density: float, seed: int, weighted: bool = True) -> Graph:
    """Erdős-Rényi graph; weights uniform in [0.2, 2) or all 1."""
    generator = np.random.default_rng(seed)
    i, j = np.triu_indices(n, k=1)
    chosen = generator.random(i.size) < density
    weight = generator.uniform(0.2, 2.0, i.size) if weighted else np.ones(i.size)
    return Graph.from_edges(np.stack([i, j], axis=1)[chosen], weight[chosen], n)


def path(n: int = 5) -> Graph:
    return weighted([(k, k + 1, 1.0) for k in range(n - 1)], n)


def star(leaves: int = 5) -> Graph:
    return weighted([(0, k, 1.0) for k in range(1, leaves + 1)], leaves + 1)


def complete(n: int = 5) -> Graph:
    return weighted([(i, j, 1.0) for i in range(n) for j in range(i)], n)


def barbell(k: int = 4) -> Graph:
    """Two complete graphs of k nodes joined by one light edge."""
    clique = [(i, j, 1.0) for i in range(k) for j in range(i)]
    return weighted([*clique, *((i + k, j + k, w) for i, j, w in clique), (k - 1, k, 0.1)], 2 * k)


def grid(height: int = 3, width: int = 4) -> Graph:
    right = [(r * width + c, r * width + c + 1, 1.0) for r in range(height) for c in range(width - 1)]
    down = [(r * width + c, (r + 1) * width + c, 1.0) for r in range(height - 1) for c in range(width)]
    return weighted([*right, *down], height * width)


def isolated_node() -> Problem:
    """Node 2 has no edge."""
    return Problem(weighted([(0, 1, 1.0), (1, 3, 0.5), (0, 3, 2.0)], 4), features(4))


def no_edges() -> Problem:
    return Problem(weighted([], 3), features(3))


def duplicate_rows() -> Problem:
    """A 4-cycle 0-1-2-3 with a chord 0-2: the neighbours 1, 2 and 3 agree, and 1, 3 have equal degree too.

    D^-1/2 F, which the gradient compares, is equal on the edge 4-5, whose ends have degree 1.
    """
    graph = weighted([(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 0, 1.0), (0, 2, 1.0), (4, 5, 1.0)], 6)
    x = features(6)
    x[3] = x[1]
    x[2] = x[1] * (graph.degree[2] / graph.degree[1]).sqrt()
    x[5] = x[4]
    return Problem(graph, x)


def zero_rows() -> Problem:
    """Rows 1, 2, 5 are zero, and 1-2 is an edge; node 5 sees only zero rows."""
    graph = weighted([(0, 1, 1.0), (1, 2, 0.5), (2, 3, 2.0), (3, 4, 1.0), (0, 3, 0.7), (2, 5, 1.0)], 6)
    x = features(6)
    x[[1, 2, 5]] = 0
    return Problem(graph, x)


def self_loop() -> Problem:
    """Node 1 keeps a self-loop of weight 0.5, node 3 has nothing else."""
    graph = weighted([(0, 1, 1.0), (1, 2, 2.0), (0, 2, 0.5), (1, 1, 0.5), (3, 3, 1.0)], 4, keep_loops=True)
    return Problem(graph, features(4))


def _featured(make: Callable[[], Graph]) -> Callable[[], Problem]:
    def problem() -> Problem:
        graph = make()
        return Problem(graph, features(graph.num_nodes))

    return problem


GENERIC: dict[str, Callable[[], Problem]] = {
    "fixture": fixture,
    "path": _featured(path),
    "star": _featured(star),
    "complete": _featured(complete),
    "barbell": _featured(barbell),
    "grid": _featured(grid),
    "random": _featured(lambda: random_graph(12, 0.4, seed=1)),
    "isolated_node": isolated_node,
    "no_edges": no_edges,
}
"""Problems where neighbours differ: everything is smooth."""

DEGENERATE: dict[str, Callable[[], Problem]] = {
    "duplicate_rows": duplicate_rows,
    "zero_rows": zero_rows,
    "self_loop": self_loop,
}
"""Problems with an edge of zero distance."""

PROBLEMS = GENERIC | DEGENERATE


def per_entry_weight(graph: Graph, weight: Tensor) -> Graph:
    """The graph with these entry weights unchecked, so that W_ij and W_ji can be moved apart."""
    return replace(graph, weight=weight)


@st.composite
def graphs_with_features(draw: st.DrawFn, max_nodes: int = 10, max_channels: int = 4) -> Problem:
    """Small graphs whose features have equal rows, zero rows, isolated nodes and rows of 1e±15."""
    n = draw(st.integers(1, max_nodes))
    node = st.integers(0, n - 1)
    triples = st.tuples(node, node, st.sampled_from([1.0, 1.0, 0.01, 0.3, 7.0, 100.0]))
    edges = draw(st.lists(triples, max_size=3 * n))
    graph = weighted(edges, n, keep_loops=draw(st.booleans()))
    x = features(n, draw(st.integers(1, max_channels)), draw(st.integers(0, 1000)))
    for i, exponent in draw(st.dictionaries(node, st.sampled_from([-15, 15]))).items():
        x[i] *= 10.0**exponent
    for i in draw(st.sets(node)):
        x[i] = 0
    for i, j in draw(st.lists(st.tuples(node, node), max_size=n)):
        x[i] = x[j]
    return Problem(graph, x)


def entries_of(graph: Graph) -> dict[tuple[int, int], float]:
    """The weight of every stored entry, by its two ends."""
    source, target = graph.edge_index.tolist()
    return dict(zip(zip(source, target, strict=True), graph.weight.tolist(), strict=True))
