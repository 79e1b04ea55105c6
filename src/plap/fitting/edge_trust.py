"""Edge trust of a fitted model."""

from __future__ import annotations

from torch import Tensor

from plap.fitting.models import Fitted
from plap.graph import Graph
from plap.insight import edge_trust as trust_of_members
from plap.insight import members_of
from plap.insight.edge_trust import can_be_judged
from plap.models import find_model
from plap.nn.linear import Features


def edge_trust(fitted: Fitted, graph: Graph, x: Features, classes: int) -> Tensor | None:
    """How many times likelier each stored entry is than chance, by the ensemble, [entries].

    See :func:`plap.insight.edge_trust`. None where there is nothing to judge: a model without
    :attr:`plap.models.ModelKind.pair_states`, no edge, or no two nodes without one.
    """
    if find_model(fitted.config.model).pair_states is None or not can_be_judged(graph):
        return None
    members = members_of(fitted.ensemble.runs, x.shape[1], classes)
    return trust_of_members(members, x, graph, seed=fitted.config.seed)
