"""How much a trained model makes of each edge."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.fitting.models import Fitted
from plap.graph import Graph
from plap.nn import PGNN
from plap.nn.linear import Features
from plap.training import build_module


def edge_trust(fitted: Fitted, graph: Graph, x: Features, classes: int) -> Tensor | None:
    """Relative weight of every stored entry in the last step of the aggregation, [entries].

    1 is what an edge of its two ends counts on average; both directions of an edge have the same value, the
    mean of the two ends' and of the members of the ensemble. None for p = 2, which weighs all edges alike.
    """
    if fitted.config.model != "pgnn" or fitted.config.p == 2.0 or graph.num_entries == 0:
        return None
    receivers = graph.receivers()
    count = torch.bincount(receivers, minlength=graph.num_nodes)
    total = torch.zeros(graph.num_entries)
    runs = [run for run in fitted.ensemble.runs if run.best_epoch > 0]
    scale = graph.degree.sqrt().float()[graph.indices.long()]  # leaves α M: who sends it does not count
    for run in runs:
        module = build_module(run.config, x.shape[1], classes)
        if not isinstance(module, PGNN):
            raise TypeError("aggregation weights exist for PGNN only")
        module.load_state_dict(run.state)
        module.eval()
        with torch.no_grad():
            _, (_, weight) = module(x, graph, return_aggregation_weights=True)
        weight = weight * scale
        mean = torch.zeros(graph.num_nodes).index_add(0, receivers, weight) / count.clamp(min=1)
        total += weight / mean.clamp(min=torch.finfo(torch.float32).tiny)[receivers]
    reverse = torch.argsort(graph.indices, stable=True)  # entry (j, i) for every entry (i, j)
    return (total + total[reverse]) / (2 * len(runs))
