from __future__ import annotations

import torch

import plap
from plap.insight import edge_trust, trust_explanation


def test_it_is_the_trust_of_every_edge_as_a_share() -> None:
    data = plap.data.csbm(phi=0.5, n=80, f=8, d=5.0, seed=1)
    members = [plap.nn.PGNN(8, 8, 2)]
    found = trust_explanation(members, data.x, data.graph, seed=3)
    odds = edge_trust(members, data.x, data.graph, seed=3)
    assert torch.equal(found.trust, odds)
    assert torch.equal(found.edge_mask, (odds / (1 + odds)).float())
    kept = found.threshold("topk", 10).get_explanation_subgraph()
    assert kept.edge_index.shape == (2, 10)
    assert float(kept.edge_mask.min()) == float(found.edge_mask.topk(10).values.min())


def test_an_edge_that_was_not_judged_stands_at_chance() -> None:
    data = plap.data.csbm(phi=0.5, n=80, f=8, d=5.0, seed=1)
    found = trust_explanation([plap.nn.PGNN(8, 8, 2)], data.x, data.graph, sample=20)
    unknown = found.trust.isnan()
    assert int((~unknown).sum()) == 40
    assert bool((found.edge_mask[unknown] == 0.5).all())
