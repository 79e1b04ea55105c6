"""All that a fitted model says of a graph, edge by edge and node by node: what ``plap inspect OUT`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from plap.data.dataset import GraphData
from plap.errors import InputError
from plap.insight.edge_trust import can_be_judged, edge_trust, edges_once
from plap.insight.entropy import uniform_entropy, weight_entropy
from plap.insight.neighbours import NeighbourHelp, neighbour_help
from plap.insight.weights import learned_weights, relative_weights

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, eq=False)
class Learned:
    """What a model made of a graph."""

    data: GraphData
    classes: tuple[str, ...]
    entropy: Tensor
    """[N]: mean over the members, NaN where no weight came."""
    uniform: Tensor
    """[N]: what it would be if all neighbours counted the same."""
    use: Tensor
    """[entries]: weight of an edge in units of its ends' average edge, mean over the members."""
    trust: Tensor | None
    """[entries]: how many times likelier than chance; None where nothing can be compared."""
    neighbours: NeighbourHelp
    judged: Tensor
    """Boolean [N]: nodes with a known label that count for whether neighbours help."""

    def summary(self) -> dict[str, Any]:
        """A few numbers, for people and for JSON."""
        several = self.uniform > 0
        mean, uniform = (
            _mean(values[several & ~self.entropy.isnan()]) for values in (self.entropy, self.uniform)
        )
        once = edges_once(self.data.graph)
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
        """One row an edge, the least trusted first: source, target, trust, use, and what is predicted."""
        import polars  # noqa: PLC0415

        once = edges_once(self.data.graph)
        source, target = self.data.graph.edge_index[:, once].numpy()
        names = self._node_names()
        said = np.array(self.classes)[self.neighbours.predicted_with.numpy()]
        trust = torch.full((once.shape[0],), torch.nan) if self.trust is None else self.trust[once]
        table = polars.DataFrame(
            {
                "source": names[source],
                "target": names[target],
                "trust": trust.double().numpy(),
                "use": self.use[once].double().numpy(),
                "source_predicted": said[source],
                "target_predicted": said[target],
            }
        )
        return table.sort("trust", "use", maintain_order=True)

    def nodes(self) -> polars.DataFrame:
        """One row a node: what is predicted with and without its edges, and how it weighs its neighbours."""
        import polars  # noqa: PLC0415

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
    members: Sequence[torch.nn.Module],
    data: GraphData,
    classes: Sequence[str],
    *,
    known: Tensor | None = None,
    judged: Tensor | None = None,
    seed: int = 0,
) -> Learned:
    """Ask an ensemble of pGNNs about every edge and every node of a graph.

    Parameters
    ----------
    members : sequence of PGNN
    data : GraphData
        Also one that the model was not trained on; its labels are not read.
    classes : sequence of str
        The model's, in the order of its answers.
    known : Tensor, int64, shape [N], optional
        True classes by the model's numbers, −1 where unknown.
    judged : Tensor, boolean, shape [N], optional
        Which of the known ones count, such as those that training did not see; all by default.
    seed : int
        Of :func:`plap.insight.edge_trust`.
    """
    if not members:
        raise InputError("there is no model to inspect")
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
