"""plap.Graph against an oracle made of dictionaries, and every sentence it refuses bad input with."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import HeteroData

from plap import Graph, InputError
from problems import entries_of

Edge = tuple[int, int]
WeightedEdge = tuple[int, int, float]
RULES: dict[str, Callable[[list[float]], float]] = {
    "max": max,
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
}


@dataclasses.dataclass(frozen=True)
class Expected:
    entries: dict[Edge, float]
    self_loops: int
    duplicates: int
    one_way: int
    symmetrized: bool


def oracle(edges: list[WeightedEdge], rule: str, keep_loops: bool) -> Expected:
    """The documented meaning, word by word: merge repeats, then the two directions if they differ."""
    loops = sum(s == t for s, t, _ in edges)
    kept = [edge for edge in edges if keep_loops or edge[0] != edge[1]]
    given_weights: dict[Edge, list[float]] = defaultdict(list)
    for s, t, w in kept:
        given_weights[s, t].append(w)
    directed = {edge: RULES[rule](weights) for edge, weights in given_weights.items()}
    one_way = sum((t, s) not in directed for s, t in directed)
    symmetric = all(directed.get((t, s)) == w for (s, t), w in directed.items())
    if symmetric:
        return Expected(directed, loops, len(kept) - len(directed), 0, False)
    both: dict[Edge, float] = {}
    for s, t in directed:
        places = [(s, t)] if s == t else [(s, t), (t, s)]
        both[s, t] = both[t, s] = RULES[rule]([directed[place] for place in places if place in directed])
    return Expected(both, loops, len(kept) - len(directed), one_way, True)


def build(edges: list[WeightedEdge], n: int, rule: str = "max", loops: str = "drop") -> Graph:
    index = torch.tensor([[s, t] for s, t, _ in edges], dtype=torch.int64).reshape(-1, 2).T
    weight = torch.tensor([w for _, _, w in edges], dtype=torch.float64)
    return Graph.from_edge_index(index, weight, n, symmetrize=rule, self_loops=loops)  # type: ignore[arg-type]


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[list[WeightedEdge], int]:
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    weight = st.sampled_from([0.25, 0.5, 1.0, 1.0, 2.0, 3.0])
    edges = draw(st.lists(st.tuples(node, node, weight), max_size=25))
    if draw(st.booleans()):
        edges = edges + [(t, s, w) for s, t, w in edges]
    return draw(st.permutations(edges)), n


@settings(max_examples=400, deadline=None)
@given(edge_lists(), st.sampled_from(sorted(RULES)), st.booleans(), st.booleans())
def test_graph_is_what_the_oracle_says(
    problem: tuple[list[WeightedEdge], int], rule: str, keep_loops: bool, weighted: bool
) -> None:
    edges, n = problem
    if not weighted:
        edges = [(s, t, 1.0) for s, t, _ in edges]
    expected = oracle(edges, rule, keep_loops)
    loops = "keep" if keep_loops else "drop"
    graph = build(edges, n, rule, loops)
    assert entries_of(graph) == pytest.approx(expected.entries)
    assert graph.num_nodes == n
    assert graph.num_entries == len(expected.entries)
    assert graph.num_edges == len({frozenset(edge) for edge in expected.entries})
    assert graph.num_self_loops == sum(s == t for s, t in expected.entries)
    info = graph.info
    assert info.input_edges == len(edges)
    assert (info.self_loops, info.duplicates) == (expected.self_loops, expected.duplicates)
    assert (info.one_way, info.symmetrized) == (expected.one_way, expected.symmetrized)
    assert info.symmetrize == rule
    degree = [sum(w for (_, t), w in expected.entries.items() if t == i) for i in range(n)]
    assert graph.degree.tolist() == pytest.approx(degree)
    assert_well_formed(graph)
    if not weighted:
        index = torch.tensor([[s, t] for s, t, _ in edges], dtype=torch.int32).reshape(-1, 2).T
        same = Graph.from_edge_index(index, None, n, symmetrize=rule, self_loops=loops)  # type: ignore[arg-type]
        assert same.digest == graph.digest
        assert same.info == graph.info
        assert same.weight.dtype == torch.float32


def assert_well_formed(graph: Graph) -> None:
    indptr, indices = graph.indptr.numpy(), graph.indices.numpy()
    assert indptr[0] == 0
    assert indptr[-1] == len(indices)
    for i in range(graph.num_nodes):
        assert (np.diff(indices[indptr[i] : indptr[i + 1]]) > 0).all()
    matrix = scipy.sparse.csr_array(
        (graph.weight.detach().numpy(), indices, indptr), (graph.num_nodes, graph.num_nodes)
    )
    assert (matrix != matrix.T).nnz == 0
    assert graph.indptr.dtype == graph.indices.dtype == torch.int32
    assert graph.weight.is_contiguous()


@settings(max_examples=100, deadline=None)
@given(edge_lists(), st.sampled_from(sorted(RULES)))
def test_digest_does_not_depend_on_the_order_of_edges(
    problem: tuple[list[WeightedEdge], int], rule: str
) -> None:
    edges, n = problem
    graph = build(edges, n, rule)
    assert build(edges[::-1], n, rule).digest == graph.digest
    assert build([*edges, (0, n, 1.0)], n + 1, rule).digest != graph.digest


def test_digest_tells_weights_and_isolated_nodes_apart() -> None:
    graph = build([(0, 1, 1.0)], 2)
    assert build([(0, 1, 2.0)], 2).digest != graph.digest
    assert build([(0, 1, 1.0)], 3).digest != graph.digest
    assert Graph.from_edges([(1, 0)]).digest == graph.digest


@pytest.mark.parametrize("rule", ["max", "mean", "sum"])
def test_gradients_flow_through_every_merge(rule: str) -> None:
    index = torch.tensor([[0, 1, 1, 2, 0, 3, 3, 2], [1, 0, 2, 1, 1, 3, 2, 0]])
    weight = torch.tensor([0.7, 1.9, 0.3, 2.2, 1.1, 0.4, 5.0, 0.9], dtype=torch.float64, requires_grad=True)

    def graph_of(w: Tensor) -> tuple[Tensor, Tensor]:
        graph = Graph.from_edge_index(index, w, symmetrize=rule, self_loops="keep")  # type: ignore[arg-type]
        return graph.weight, graph.degree

    assert torch.autograd.gradcheck(graph_of, (weight,))


def test_symmetric_input_keeps_the_gradient_of_each_direction_apart() -> None:
    index = torch.tensor([[1, 0, 2, 1], [0, 1, 1, 2]])
    weight = torch.tensor([3.0, 3.0, 5.0, 5.0], requires_grad=True)
    graph = Graph.from_edge_index(index, weight)
    coefficient = torch.tensor([1.0, 10.0, 100.0, 1000.0])
    (graph.weight * coefficient).sum().backward()
    assert graph.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]
    assert weight.grad is not None
    assert weight.grad.tolist() == coefficient.tolist()


def test_tied_directions_share_the_gradient_of_a_maximum() -> None:
    weight = torch.tensor([2.0, 2.0, 1.0], requires_grad=True)
    Graph.from_edge_index(torch.tensor([[0, 1, 1], [1, 0, 2]]), weight).weight.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [1.0, 1.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64])
def test_weight_types(dtype: torch.dtype) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0], [1]]), torch.tensor([3], dtype=dtype))
    expected = torch.float64 if dtype == torch.float64 else torch.float32
    assert graph.weight.dtype == expected
    assert graph.degree.dtype == torch.float64
    assert graph.weight.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint64])
def test_index_types(dtype: torch.dtype) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 2], [1, 1]], dtype=dtype))
    assert graph.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]


def test_graph_does_not_alias_what_the_caller_gave() -> None:
    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weight = torch.tensor([1.0, 1.0, 2.0, 2.0])
    matrix = scipy.sparse.csr_array(np.array([[0.0, 2.0], [2.0, 0.0]]))
    pairs = np.array([[0, 1], [1, 0]])
    graphs = [Graph.from_edge_index(index, weight), Graph.from_scipy(matrix), Graph.from_edges(pairs)]
    before = [graph.digest for graph in graphs]
    index.zero_()
    weight.zero_()
    pairs[:] = 0
    matrix.data[:] = 7
    matrix.indices[:] = 0
    assert [graph.digest for graph in graphs] == before


def test_graph_is_frozen() -> None:
    graph = Graph.from_edges([(0, 1)])
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.weight = torch.zeros(2)  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.info.duplicates = 3  # type: ignore[misc]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_graph_without_edges(n: int) -> None:
    for graph in (
        Graph.from_edge_index(torch.zeros(2, 0, dtype=torch.int64), num_nodes=n),
        Graph.from_edges([], num_nodes=n),
        Graph.from_edges(np.zeros((0, 2)), np.zeros(0), num_nodes=n),
        Graph.from_scipy(scipy.sparse.coo_array((n, n))),
        Graph.from_networkx(networkx.empty_graph(n)),
    ):
        assert (graph.num_nodes, graph.num_edges, graph.num_entries) == (n, 0, 0)
        assert graph.degree.tolist() == [0.0] * n
        assert not graph.info.symmetrized


def test_isolated_nodes_stay() -> None:
    graph = Graph.from_edges([(1, 3)], num_nodes=6)
    assert graph.degree.tolist() == [0, 1, 0, 1, 0, 0]
    assert graph.indptr.tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert "4 isolated" in repr(graph)


def test_only_self_loops() -> None:
    assert Graph.from_edges([(1, 1), (1, 1)]).num_entries == 0
    kept = Graph.from_edges([(1, 1), (1, 1)], symmetrize="sum", self_loops="keep")
    assert entries_of(kept) == {(1, 1): 2.0}
    assert (kept.num_edges, kept.num_self_loops, kept.info.symmetrized) == (1, 1, False)


def test_repr_says_what_happened() -> None:
    assert repr(Graph.from_edges([(0, 1), (1, 0)])) == "Graph(2 nodes, 1 edges, unweighted)"
    text = repr(build([(0, 1, 2.0), (0, 1, 2.0), (1, 1, 1.0), (2, 2, 1.0)], 3))
    happened = "dropped 2 self-loops, merged 1 duplicate, made undirected"
    assert text == f"Graph(3 nodes, 1 edges, weighted, 1 isolated, {happened})"
    assert "1 self-loop" in repr(build([(0, 0, 1.0)], 1, loops="keep"))


def test_the_constructor_refuses_what_the_kernel_would_misread() -> None:
    graph = Graph.from_edges([(0, 1)])
    with pytest.raises(
        ValueError, match="indptr and indices must be contiguous and both int32 or both int64"
    ):
        replace(graph, indices=graph.indices.long())
    with pytest.raises(ValueError, match="indices and weight must have one value per stored entry"):
        replace(graph, weight=graph.weight[:1])


def test_devices() -> None:
    graph = Graph.from_edges([(0, 1), (1, 2)])
    assert graph.to("cpu") is graph
    moved = graph.to("meta")
    assert moved.device.type == "meta"
    assert moved.degree.shape == (3,)
    assert moved.info == graph.info
    assert repr(moved) == "Graph(3 nodes, meta)"


def test_with_weight_replaces_and_checks() -> None:
    graph = build([(0, 1, 1.0), (1, 2, 1.0), (2, 2, 1.0), (0, 1, 1.0)], 4, loops="keep")
    weight = torch.tensor([2.0, 2.0, 3.0, 3.0, 9.0], requires_grad=True)
    other = graph.with_weight(weight)
    assert other.weight.tolist() == weight.tolist()
    assert other.degree.tolist() == [2.0, 5.0, 12.0, 0.0]
    assert other.info == graph.info
    other.degree.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [1.0] * 5
    with pytest.raises(InputError, match=r"edge 0 → 1 has weight 2.0 but its reverse has 1.0"):
        graph.with_weight(torch.tensor([1.0, 2.0, 3.0, 3.0, 9.0]))
    with pytest.raises(InputError, match=r"weight must have shape \[5\], not \[2\]"):
        graph.with_weight(torch.ones(2))


INDEX = torch.tensor([[0, 1], [1, 2]])
REFUSALS: list[tuple[str, Callable[[], object]]] = [
    ("edge_index must be a tensor, not list", lambda: Graph.from_edge_index([[0], [1]])),  # type: ignore[arg-type]
    (
        "edge_index must have shape [2, E], not [3, 2]",
        lambda: Graph.from_edge_index(INDEX.T.repeat(3, 1)[:3]),
    ),
    ("edge_index must have shape [2, E], not [2]", lambda: Graph.from_edge_index(torch.zeros(2).long())),
    ("integer node indices, not torch.float32", lambda: Graph.from_edge_index(INDEX.float())),
    ("integer node indices, not torch.bool", lambda: Graph.from_edge_index(INDEX.bool())),
    ("edge_index[1, 1] = -4 is negative", lambda: Graph.from_edge_index(torch.tensor([[0, 1], [1, -4]]))),
    ("edge_index[0, 0] = -1 is negative", lambda: Graph.from_edge_index(torch.tensor([[-1, 1], [1, -4]]))),
    ("edge_index[1, 1] = 2 is out of range: num_nodes is 2", lambda: Graph.from_edge_index(INDEX, None, 2)),
    (
        "edge_index[0, 0] = 4294967296 is too large",
        lambda: Graph.from_edge_index(torch.tensor([[2**32], [0]])),
    ),
    ("num_nodes = 4294967296 is too large", lambda: Graph.from_edge_index(INDEX, None, 2**32)),
    ("integer of 0 or more, not -1", lambda: Graph.from_edge_index(INDEX, None, -1)),
    ("integer of 0 or more, not 2.5", lambda: Graph.from_edge_index(INDEX, None, 2.5)),  # type: ignore[arg-type]
    ("integer of 0 or more, not True", lambda: Graph.from_edge_index(INDEX, None, True)),
    ("edge_weight must have shape [2], not [3]", lambda: Graph.from_edge_index(INDEX, torch.ones(3))),
    ("edge_weight must have shape [2], not [2, 2]", lambda: Graph.from_edge_index(INDEX, torch.ones(2, 2))),
    ("edge_weight must be real", lambda: Graph.from_edge_index(INDEX, torch.ones(2, dtype=torch.complex64))),
    ("edge_weight must be a tensor, not list", lambda: Graph.from_edge_index(INDEX, [1.0, 1.0])),  # type: ignore[arg-type]
    (
        "edge_weight[1] = 0.0 is not",
        lambda: Graph.from_edge_index(INDEX, torch.tensor([1.0, 0.0])),
    ),
    ("edge_weight[0] = -2.0 is not", lambda: Graph.from_edge_index(INDEX, torch.tensor([-2.0, 0.0]))),
    ("edge_weight[1] = nan is not", lambda: Graph.from_edge_index(INDEX, torch.tensor([1.0, torch.nan]))),
    ("edge_weight[0] = inf is not", lambda: Graph.from_edge_index(INDEX, torch.tensor([torch.inf, 1.0]))),
    (
        "symmetrize must be one of max, mean, sum, error, not 'min'",
        lambda: Graph.from_edge_index(INDEX, symmetrize="min"),  # type: ignore[arg-type]
    ),
    (
        "self_loops must be one of drop, keep, not 'add'",
        lambda: Graph.from_edge_index(INDEX, self_loops="add"),  # type: ignore[arg-type]
    ),
    ("edge 1 → 2 has no reverse", lambda: Graph.from_edges([(0, 1), (1, 0), (1, 2)], symmetrize="error")),
    ("edge 2 → 1 has no reverse", lambda: Graph.from_edges([(0, 1), (1, 0), (2, 1)], symmetrize="error")),
    ("edge 1 → 0 is given twice", lambda: Graph.from_edges([(0, 1), (1, 0), (1, 0)], symmetrize="error")),
    (
        "edge 0 → 1 has weight 1.0 but its reverse has 2.0, and symmetrize is 'error'",
        lambda: Graph.from_edges([(0, 1), (1, 0)], [1.0, 2.0], symmetrize="error"),
    ),
    ("edges must have shape [E, 2], not [1, 3]", lambda: Graph.from_edges([(0, 1, 2)])),
    ("edges must have shape [E, 2]", lambda: Graph.from_edges([(0, 1), (2,)])),
    ("integer node indices, not float64", lambda: Graph.from_edges([(0.0, 1.0)])),
    ("edges must hold integer node indices, not <U1", lambda: Graph.from_edges([("a", "b")])),
    ("index of 2^63 or more", lambda: Graph.from_edges(np.array([[0, 2**63]], dtype=np.uint64))),
    ("weight must hold real numbers, not <U1", lambda: Graph.from_edges([(0, 1)], ["a"])),
    ("matrix must be square", lambda: Graph.from_scipy(scipy.sparse.coo_array((2, 3)))),
    (
        "must be a SciPy sparse matrix, not ndarray; scipy.sparse.csr_array(matrix) makes one",
        lambda: Graph.from_scipy(np.eye(2)),
    ),
    ("matrix must be a SciPy sparse matrix, not list", lambda: Graph.from_scipy([[1]])),
    ("not HeteroData; data.to_homogeneous() makes one", lambda: Graph.from_pyg(HeteroData())),
    ("data must be a torch_geometric.data.Data, not list", lambda: Graph.from_pyg([1])),
    ("matrix must be square", lambda: Graph.from_torch_sparse(torch.zeros(2, 3).to_sparse())),
    ("matrix must be a torch sparse matrix, not ndarray", lambda: Graph.from_torch_sparse(np.eye(3))),  # type: ignore[arg-type]
    (
        "matrix must be a torch sparse matrix, not csr_array; Graph.from_scipy takes it",
        lambda: Graph.from_torch_sparse(scipy.sparse.csr_array(np.eye(3))),
    ),
    (
        "edge_weight[0] = -1.0 is not",
        lambda: Graph.from_scipy(scipy.sparse.coo_array(np.array([[0, -1.0], [0, 0]]))),
    ),
    (
        "weight must be a number on every edge, not 'x' on ('a', 'b')",
        lambda: Graph.from_networkx(networkx.Graph([("a", "b", {"weight": "x"})])),
    ),
]


@pytest.mark.parametrize(("sentence", "call"), REFUSALS, ids=[sentence for sentence, _ in REFUSALS])
def test_bad_input_is_refused_in_a_sentence(sentence: str, call: Callable[[], object]) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
