"""Where predictions are made, decided by counting nodes and entries without cutting anything out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import problems
from plap.graph import Graph
from plap.parts import with_halo
from plap.parts.subgraph import halo_size
from plap.training import RunConfig, build_module
from plap.training.modules import Halo, halo_of
from plap.training.pieces import Pieces, Ranks, model_on_pieces
from plap.training.pieces.model_on_pieces import Evaluation, halos_are_less
from tiny_training import Masks

ALONE = Ranks(torch.device("cpu"))
GRAPHS = {
    "grid": problems.grid(12, 12),
    "path": problems.path(60),
    "complete": problems.complete(20),
    "random": problems.random_graph(60, 0.1, seed=2),
}


def in_parts(graph: Graph, parts: int = 4) -> Pieces:
    number = torch.arange(graph.num_nodes)
    split = Masks(number % 2 == 0, number % 5 == 1)
    x = problems.features(graph.num_nodes).float()
    return Pieces(graph, x, number % 2, split, number * parts // graph.num_nodes)


def chosen(pieces: Pieces, config: RunConfig, ranks: Ranks = ALONE) -> Evaluation:
    module = build_module(config, pieces.x.shape[1], pieces.task.num_outputs)
    return Evaluation(pieces, config, module, ranks, "auto")


def built(graph: Graph, nodes: Tensor, halo: Halo) -> int:
    piece = with_halo(graph, nodes, halo.hops, rim_loops=halo.rim_loops).graph
    return piece.num_nodes + piece.num_entries


@given(
    problem=problems.graphs_with_features(),
    halo=st.builds(Halo, st.integers(0, 3), st.booleans()),
    data=st.data(),
)
def test_the_size_of_a_halo_is_that_of_the_graph_that_would_be_built(
    problem: problems.Problem, halo: Halo, data: st.DataObject
) -> None:
    nodes = data.draw(st.sets(st.integers(0, problem.graph.num_nodes - 1), min_size=1))
    core = torch.tensor(sorted(nodes))
    size = halo_size(problem.graph, core, halo.hops, rim_loops=halo.rim_loops)
    assert size == built(problem.graph, core, halo)


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The hops of every halo that is cut out."""
    seen: list[int] = []
    cut = Pieces.exact_piece

    def exact_piece(self: Pieces, nodes: Tensor, halo: Halo) -> object:
        seen.append(halo.hops)
        return cut(self, nodes, halo)

    monkeypatch.setattr(Pieces, "exact_piece", exact_piece)
    return seen


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("hops", [1, 2])
def test_auto_takes_halos_where_they_are_less_and_cuts_none_to_find_out(
    name: str, hops: int, cuts: list[int]
) -> None:
    pieces = in_parts(GRAPHS[name])
    evaluated = chosen(pieces, RunConfig(K=hops, hidden=4))
    assert not cuts
    cores = [nodes[pieces.split.val[nodes]] for nodes in pieces.groups()]
    work = sum(built(pieces.graph, nodes, Halo(hops, rim_loops=True)) for nodes in cores)
    less = work < pieces.graph.num_nodes + pieces.graph.num_entries
    evaluated.validate(torch.zeros(1, dtype=torch.float64))
    assert cuts == ([hops] * len(cores) if less else [])


def test_both_answers_are_among_these_graphs() -> None:
    halo = Halo(1, rim_loops=True)
    answers = {name: halos_are_less(in_parts(graph), halo, ALONE) for name, graph in GRAPHS.items()}
    assert answers == {"grid": True, "path": True, "complete": False, "random": True}


def test_a_process_counts_its_own_parts_alone() -> None:
    pieces, halo = in_parts(GRAPHS["complete"]), Halo(1, rim_loops=True)
    assert not halos_are_less(pieces, halo, ALONE)
    assert not halos_are_less(pieces, halo, Ranks(ALONE.device, rank=3, size=4))  # one halo is everything
    assert halos_are_less(pieces, halo, Ranks(ALONE.device, rank=4, size=5))  # no part is left for it


def test_counting_ends_at_the_size_of_the_whole_graph_and_is_done_once_a_number_of_hops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[int] = []

    def size(graph: Graph, nodes: Tensor, hops: int, *, rim_loops: bool) -> int:
        counted.append(hops)
        return halo_size(graph, nodes, hops, rim_loops=rim_loops)

    monkeypatch.setattr(model_on_pieces, "halo_size", size)
    pieces = in_parts(GRAPHS["complete"], parts=10)
    for seed in range(3):
        chosen(pieces, RunConfig(K=2, seed=seed))
    assert counted == [2]  # the first halo is the whole graph
    counted.clear()
    pieces = in_parts(GRAPHS["path"])
    for config in (RunConfig(K=1), RunConfig(model="mlp"), RunConfig(K=1, seed=1), RunConfig(model="mlp")):
        chosen(pieces, config)
    assert counted == [1] * 4 + [0] * 4


def test_what_is_known_of_pieces_goes_with_them() -> None:
    before = len(model_on_pieces._known)
    pieces = in_parts(GRAPHS["path"])
    config = RunConfig(K=1)
    assert halo_of(config, build_module(config, 3, 2)) == Halo(1, rim_loops=True)
    chosen(pieces, config)
    assert len(model_on_pieces._known) == before + 1
    del pieces
    assert len(model_on_pieces._known) == before
