"""What a model makes of each edge, against dense formulas and PyG's own attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.nn import GATConv

import plap
import problems
from plap.insight import learned_weights, load_members, members_of, relative_weights
from plap.nn.gat import GAT
from plap.training import RunConfig, build_module


def test_weights_of_pgnn_are_those_of_its_last_step() -> None:
    problem = problems.GENERIC["random"]()
    module = plap.nn.PGNN(3, 4, 2, p=1.5, mu=0.2, K=3, dropout=0.5).double()
    before = plap.propagate(torch.relu(module.lin(problem.x)), problem.graph, 1.5, 0.2, 2)
    expected = plap.aggregation_weights(before, problem.graph, 1.5, 0.2)
    assert module.training
    torch.testing.assert_close(learned_weights(module, problem.x, problem.graph), expected)
    assert module.training
    module.conv.eval()
    learned_weights(module, problem.x, problem.graph)
    assert [module.training, module.lin.training, module.conv.training] == [True, True, False]


def test_attention_is_that_of_pyg_with_self_loops_taken_out() -> None:
    graph = plap.Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3), (1, 1)], self_loops="keep")
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    module = GAT(5, 3, 2, heads=2)
    plain = GATConv(5, 3, heads=2)
    plain.load_state_dict({"lin.weight": module.lin.weight, **module.conv1.state_dict()})
    edges = graph.edge_index
    _, (pairs, attention) = plain.eval()(x, edges[:, edges[0] != edges[1]], return_attention_weights=True)
    by_pair = {tuple(pair): row for pair, row in zip(pairs.T.tolist(), attention, strict=True)}
    found = learned_weights(module, x, graph)
    assert found.shape == (graph.num_entries, 2)
    for pair, row in zip(edges.T.tolist(), found, strict=True):
        torch.testing.assert_close(row, by_pair[tuple(pair)])


def test_relative_weights_average_to_one_at_every_node() -> None:
    problem = problems.GENERIC["random"]()
    graph = problem.graph
    weight = plap.aggregation_weights(problem.x, graph, 1.2, 0.1)
    relative = relative_weights(weight, graph)
    torch.testing.assert_close(relative, relative[graph.reverse_entries()])
    one_way = weight * graph.degree.sqrt()[graph.indices.long()]
    rows = [one_way[graph.receivers() == node] for node in range(graph.num_nodes)]
    each = torch.cat([row / row.mean() for row in rows]).float()
    torch.testing.assert_close(relative, (each + each[graph.reverse_entries()]) / 2)


def test_equal_edges_of_a_regular_graph_count_one() -> None:
    ring = plap.Graph.from_edges([(k, (k + 1) % 6) for k in range(6)])
    weight = plap.aggregation_weights(torch.eye(6), ring, 2.0, 0.1)
    torch.testing.assert_close(relative_weights(weight, ring), torch.ones(12))


def test_weights_all_zero_are_not_a_number_less() -> None:
    ring = plap.Graph.from_edges([(k, (k + 1) % 6) for k in range(6)])
    assert relative_weights(torch.zeros(12), ring).tolist() == [0.0] * 12


@pytest.mark.parametrize("weight", [torch.ones(12, 8), torch.ones(11), [1.0] * 12])
def test_relative_weights_are_one_per_entry(weight: Any) -> None:
    ring = plap.Graph.from_edges([(k, (k + 1) % 6) for k in range(6)])
    with pytest.raises(plap.InputError, match=r"weight must be a tensor of shape \[12\], not"):
        relative_weights(weight, ring)


def test_other_models_have_no_weights() -> None:
    with pytest.raises(plap.InputError, match="for pGNN, MLP, GAT and deep pGNN, not for GCN"):
        learned_weights(plap.nn.baselines.GCN(2, 2, 2), torch.eye(2), plap.Graph.from_edges([(0, 1)]))


def test_an_mlp_gives_every_edge_the_weight_0() -> None:
    mlp = plap.nn.baselines.MLP(2, 2, 2)
    assert learned_weights(mlp, torch.eye(2), plap.Graph.from_edges([(0, 1)])).tolist() == [0, 0]


def test_members_carry_their_weights_and_refuse_others() -> None:
    config = RunConfig(hidden=4)
    module = build_module(config, 3, 2)
    (member,) = load_members(config, [module.state_dict()], 3, 2)
    assert not member.training
    torch.testing.assert_close(member.state_dict(), module.state_dict())
    with pytest.raises(plap.InputError, match="do not match its configuration"):
        load_members(config, [module.state_dict()], 5, 2)
    assert members_of([], 3, 2) == []
