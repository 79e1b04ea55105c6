from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

import plap
import problems
from plap.errors import InputError
from plap.parts import PartLoader, partition

GRAPH = problems.grid(10, 12)
PART = partition(GRAPH, 8, cache=False)


def epoch_nodes(loader: PartLoader, number: int) -> list[list[int]]:
    return [batch.nodes.tolist() for batch in loader.epoch(number)]


@pytest.mark.parametrize("parts_per_batch", [1, 3, 8, 20])
def test_an_epoch_has_every_node_once_in_whole_parts(parts_per_batch: int) -> None:
    loader = PartLoader(GRAPH, PART, parts_per_batch)
    batches = list(loader.epoch(0))
    assert len(batches) == len(loader) == -(-8 // parts_per_batch)
    assert sorted(node for batch in batches for node in batch.nodes.tolist()) == list(range(120))
    for batch in batches:
        chosen = PART[batch.nodes].unique()
        assert chosen.numel() <= parts_per_batch
        assert batch.nodes.tolist() == torch.isin(PART, chosen).nonzero().squeeze(1).tolist()


def test_edges_between_the_parts_of_a_batch_are_kept() -> None:
    (batch,) = PartLoader(GRAPH, PART, 8).epoch(0)
    assert batch.graph.digest == GRAPH.digest
    kept = [batch.graph.num_edges for batch in PartLoader(GRAPH, PART, 4).epoch(0)]
    alone = [batch.graph.num_edges for batch in PartLoader(GRAPH, PART, 1).epoch(0)]
    assert sum(kept) > sum(alone)


def test_epochs_differ_and_can_be_resumed_anywhere() -> None:
    loader = PartLoader(GRAPH, PART, 2, seed=5)
    first, second = epoch_nodes(loader, 0), epoch_nodes(loader, 1)
    assert first != second
    assert epoch_nodes(PartLoader(GRAPH, PART, 2, seed=5), 1) == second
    assert epoch_nodes(PartLoader(GRAPH, PART, 2, seed=6), 1) != second


def test_halos_give_the_whole_graph_s_result() -> None:
    x = problems.features(120, 3)
    whole = plap.propagate(x, GRAPH, 1.5, 0.1, 3)
    result = torch.full_like(x, torch.nan)
    for piece in PartLoader(GRAPH, PART, 3).halos(3):
        part = plap.propagate(piece.rows(x), piece.graph, 1.5, 0.1, 3)
        result[piece.core_nodes] = part[piece.core]
    torch.testing.assert_close(result, whole, rtol=1e-12, atol=1e-12)


def test_numbers_without_nodes_make_no_batch() -> None:
    part = torch.tensor([0, 0, 7, 7, 7])
    loader = PartLoader(problems.path(5), part)
    assert sorted(epoch_nodes(loader, 0)) == [[0, 1], [2, 3, 4]]


def test_training_on_parts_learns() -> None:
    data = plap.data.csbm(phi=0.75, n=1000, f=50, d=10.0, seed=3)
    split = plap.data.split(data, seed=0)
    loader = PartLoader(data.graph, partition(data.graph, 10, cache=False), parts_per_batch=5)
    torch.manual_seed(0)
    model = plap.nn.PGNN(50, 16, 2, p=2.0, mu=0.1, K=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(30):
        for batch in loader.epoch(epoch):
            known = batch.rows(split.train)
            optimizer.zero_grad()
            logits = model(batch.rows(data.x), batch.graph)
            cross_entropy(logits[known], batch.rows(data.y)[known]).backward()
            optimizer.step()
    model.eval()
    right = model(data.x, data.graph).argmax(1) == data.y
    assert right[split.test].float().mean() > 0.85


def test_refuses() -> None:
    with pytest.raises(InputError, match="one integer for each of the 120 nodes"):
        PartLoader(GRAPH, PART[:5])
    with pytest.raises(InputError, match="one integer for each of the 120 nodes"):
        PartLoader(GRAPH, PART.float())
    with pytest.raises(InputError, match="parts_per_batch must be an integer of 1 or more, not 0"):
        PartLoader(GRAPH, PART, 0)
    with pytest.raises(InputError, match="graph must be a"):
        PartLoader("cora", PART)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="seed must be"):
        PartLoader(GRAPH, PART, seed=-1)
    with pytest.raises(InputError, match="number must be an integer of 0 or more, not -1"):
        next(PartLoader(GRAPH, PART).epoch(-1))
