"""What a fitted model says about every edge and node of a graph: what ``plap inspect OUT`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars
import torch
from torch import Tensor

from plap.data.dataset import GraphData
from plap.insight.members import (
    as_members,
    learned_weights,
    relative_weights,
    uniform_entropy,
    weight_entropy,
)
from plap.insight.reliance import NeighbourHelp, neighbour_help
from plap.insight.trust import can_be_judged, edge_trust


@dataclass(frozen=True, eq=False)
class Learned:
    """What a model says about a graph."""

    data: GraphData
    classes: tuple[str, ...]
    entropy: Tensor
    """[N]: mean over the members; NaN for nodes whose weights are all 0."""
    uniform: Tensor
    """[N]: its value if all neighbours counted the same."""
    use: Tensor
    """[entries]: weight of an edge relative to the average edge of its ends, mean over the members."""
    trust: Tensor | None
    """[entries]: odds against chance (:func:`plap.insight.edge_trust`); None if it is not defined."""
    neighbours: NeighbourHelp
    judged: Tensor
    """Boolean [N]: the nodes with a known label on which the effect of the neighbours is measured."""

    def summary(self) -> dict[str, Any]:
        """Summary statistics, ready for JSON."""
        several = self.uniform > 0
        mean, uniform = (
            _mean(values[several & ~self.entropy.isnan()]) for values in (self.entropy, self.uniform)
        )
        once = self.data.graph.edges_once()
        trust = None if self.trust is None else self.trust[once]
        return {
            "entropy": {"mean": mean, "uniform": uniform, "nodes": int(several.sum())},
            "trust": None
            if trust is None
            else {
                "median": float(trust.median()),
                "below_chance": int((trust < 1).sum()),
                "edges": trust.numel(),
            },
            "neighbours": {
                "judged": int(self.judged.sum()),
                "helped": int((self.neighbours.helped & self.judged).sum()),
                "harmed": int((self.neighbours.harmed & self.judged).sum()),
                "mean_gain": _mean(self.neighbours.gain[self.judged]),
            },
        }

    def edges(self) -> polars.DataFrame:
        """One row per edge, the least trusted first: its ends, trust, relative weight, predicted classes."""
        once = self.data.graph.edges_once()
        source, target = self.data.graph.edge_index[:, once].numpy()
        names = self._node_names()
        said = np.array(self.classes)[self.neighbours.predicted_with.numpy()]
        trust = torch.full((once.shape[0],), torch.nan) if self.trust is None else self.trust[once]
        table = polars.DataFrame(
            {
                "source": names[source],
                "target": names[target],
                "trust": trust.double().numpy(),
                "relative_weight": self.use[once].double().numpy(),
                "source_predicted": said[source],
                "target_predicted": said[target],
            }
        )
        return table.sort("trust", "relative_weight", maintain_order=True)

    def nodes(self) -> polars.DataFrame:
        """One row per node: the predictions with and without its edges, and the entropy of its weights."""
        found, names = self.neighbours, np.array(self.classes)
        known = [name if yes else None for name, yes in zip(names[found.label], found.known, strict=True)]
        return polars.DataFrame(
            {
                "node": self._node_names(),
                "known": polars.Series(known, dtype=polars.String),
                "predicted": names[found.predicted_with],
                "predicted_alone": names[found.predicted_without],
                "probability": found.with_edges.double().numpy(),
                "probability_alone": found.without_edges.double().numpy(),
                "gain": found.gain.double().numpy(),
                "entropy": polars.Series(self.entropy.numpy()).fill_nan(None),
                "entropy_uniform": polars.Series(self.uniform.numpy()).fill_nan(None),
            }
        )

    def _node_names(self) -> np.ndarray:
        return np.array(self.data.node_ids)


def what_was_learned(
    members: Sequence[torch.nn.Module] | torch.nn.Module,
    data: GraphData,
    classes: Sequence[str],
    *,
    known: Tensor | None = None,
    judged: Tensor | None = None,
    seed: int = 0,
) -> Learned:
    """Ask an ensemble about every edge and every node of a graph.

    Parameters
    ----------
    members : module, or sequence of modules, of models with edge weights and states of pairs, such as PGNN
    data : GraphData
        It may differ from the training graph; its labels are not used.
    classes : sequence of str
        The classes of the model, in the order of its outputs.
    known : Tensor, int64, shape [N], optional
        True classes as indices into ``classes``, −1 where unknown.
    judged : Tensor, boolean, shape [N], optional
        Which of the known nodes to use, such as the held-out ones; all by default.
    seed : int
        Random seed for :func:`plap.insight.edge_trust`.
    """
    members = as_members(members)
    graph, x = data.graph, data.x
    weights = [learned_weights(member, x, graph) for member in members]
    entropies = torch.stack([weight_entropy(weight, graph) for weight in weights])
    neighbours = neighbour_help(members, x, graph, known)
    return Learned(
        data,
        tuple(classes),
        entropies.nanmean(0),
        uniform_entropy(graph),
        torch.stack([relative_weights(weight, graph) for weight in weights]).mean(0),
        edge_trust(members, x, graph, seed=seed) if can_be_judged(graph) else None,
        neighbours,
        neighbours.known if judged is None else neighbours.known & judged,
    )


def _mean(values: Tensor) -> float | None:
    return float(values.mean()) if values.numel() else None
