"""Edge trust in the form of PyG's explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from plap.graph import Graph
from plap.insight.edge_trust import edge_trust
from plap.nn.linear import Features

if TYPE_CHECKING:
    from torch_geometric.explain import Explanation


def trust_explanation(
    members: Sequence[torch.nn.Module], x: Features, graph: Graph, **options: Any
) -> Explanation:
    """Edge trust as a ``torch_geometric.explain.Explanation``.

    Its ``edge_mask`` is t / (1 + t) of the odds t of :func:`plap.insight.edge_trust`: 1 is an edge beyond
    doubt, and 0.5 is chance, which edges that were not judged have too. ``trust`` holds the odds themselves,
    and ``x`` and ``edge_index`` the graph, so that PyG's ``threshold``, ``get_explanation_subgraph`` and
    ``visualize_graph`` work as usual.

    Parameters
    ----------
    members, x, graph, options :
        As for :func:`plap.insight.edge_trust`.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.5, n=60, f=8, d=5.0, seed=1)
    >>> found = trust_explanation([plap.nn.PGNN(8, 8, 2)], data.x, data.graph)
    >>> found.edge_mask.shape[0] == found.edge_index.shape[1]
    True
    """
    from torch_geometric.explain import Explanation  # noqa: PLC0415  (slow to import)

    trust = edge_trust(members, x, graph, **options)
    share = torch.where(trust.isnan(), 0.5, trust / (1 + trust)).nan_to_num(1.0)
    explanation = Explanation(
        x=x, edge_index=graph.edge_index, edge_mask=share.float(), trust=trust, num_nodes=graph.num_nodes
    )
    explanation.validate(raise_on_error=True)
    return explanation
