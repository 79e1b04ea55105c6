"""Node embeddings are what the last linear map sees, and their plane keeps neighbours together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.manifold import trustworthiness

import plap
import problems
from plap.insight import node_embeddings, tsne
from plap.nn.baselines import GCN, MLP, SGC


def test_the_last_map_of_an_embedding_gives_the_logits() -> None:
    graph, x = problems.random_graph(12, 0.4, seed=1), problems.features(12).float()
    pgnn, gcn, mlp = plap.nn.PGNN(3, 4, 2, p=1.5), GCN(3, 4, 2), MLP(3, 4, 2)
    for module, last in ((pgnn, pgnn.conv.lin), (gcn, gcn.lin2), (mlp, mlp.lin2)):
        with torch.no_grad():
            expected = module.eval()(x, graph)
            torch.testing.assert_close(last(node_embeddings(module, x, graph)), expected)
    with pytest.raises(plap.InputError, match="and deep pGNN, not from SGC"):
        node_embeddings(SGC(3, 2), x, graph)


def test_tsne_is_the_same_again_and_keeps_neighbours() -> None:
    generator = torch.Generator().manual_seed(0)
    centres = torch.eye(4).repeat_interleave(20, dim=0)
    states = centres + 0.05 * torch.randn(80, 4, generator=generator)
    plane = tsne(states)
    np.testing.assert_array_equal(plane, tsne(states))
    assert trustworthiness(states.numpy(), plane, n_neighbors=10) > 0.9


def test_tsne_of_few_rows() -> None:
    assert tsne(torch.eye(4)).shape == (4, 2)
    assert np.isfinite(tsne(torch.zeros(8, 3))).all()
    row = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    assert np.isfinite(tsne(row.expand(8, 3))).all()  # their standard deviation is 1e-16, by rounding
    with pytest.raises(plap.InputError, match="at least 4 rows"):
        tsne(torch.eye(3))
