"""The last step of every loader of a user's own files: checked parts to a :class:`GraphData`."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.data.features import compact
from plap.data.graph_data import GraphData, Provenance
from plap.data.structural import STRUCTURAL_NAMES, structural_features
from plap.graph import Graph, GraphInfo, Symmetrize


def assemble(
    *,
    name: str,
    source: str,
    files: dict[str, str],
    edge_index: Tensor,
    weight: Tensor | None,
    num_nodes: int,
    x: Tensor | None,
    y: Tensor | None,
    class_names: tuple[str, ...] = (),
    feature_names: tuple[str, ...] | None = None,
    node_ids: tuple[str, ...] | tuple[int, ...] | None = None,
    notes: tuple[str, ...] = (),
    symmetrize: Symmetrize = "max",
) -> GraphData:
    """Build the graph, make features up if there are none, and note all that was changed."""
    graph = Graph.from_edge_index(edge_index, weight, num_nodes, symmetrize=symmetrize)
    notes = (*notes, *changes(graph.info))
    if x is None:
        x, feature_names = structural_features(graph), STRUCTURAL_NAMES
        notes = (
            *notes,
            f"No features were given: {', '.join(STRUCTURAL_NAMES)} were computed from the edges.",
        )
    return GraphData(
        name=name,
        graph=graph,
        x=compact(x),
        y=torch.full((num_nodes,), -1) if y is None else y,
        class_names=class_names,
        node_ids=node_ids,
        feature_names=feature_names,
        provenance=Provenance(source, files, notes),
    )


def changes(info: GraphInfo) -> tuple[str, ...]:
    """What happened to the edges on their way in, a sentence each.

    Examples
    --------
    >>> import plap
    >>> changes(plap.Graph.from_edges([(0, 1), (0, 1), (2, 2)]).info)[:2]
    ('Self-loops dropped: 1.', 'Repeated edges merged by max: 1.')
    """
    notes = []
    if info.self_loops:
        notes.append(f"Self-loops dropped: {info.self_loops}.")
    if info.duplicates:
        notes.append(f"Repeated edges merged by {info.symmetrize}: {info.duplicates}.")
    if info.one_way:
        notes.append(f"Made undirected: {info.one_way} of {info.input_edges} edges had no reverse.")
    elif info.symmetrized:
        notes.append(
            f"Made undirected: the two directions differed in weight and were merged by {info.symmetrize}."
        )
    return tuple(notes)
