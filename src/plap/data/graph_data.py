"""A graph with features, labels and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from plap.graph import Graph


@dataclass(frozen=True)
class Provenance:
    """Where the data came from and what was done to it on the way in."""

    source: str
    """The public project, the generator and its arguments, or the user's path."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of every file that was read, by name."""
    notes: tuple[str, ...] = ()
    """What was symmetrised, dropped, merged or made up, a sentence each."""


@dataclass(frozen=True)
class FixedSplits:
    """Splits that came with the data, one column each: boolean tensors of shape [N, S]."""

    train: Tensor
    val: Tensor
    test: Tensor


@dataclass(frozen=True)
class GraphData:
    """What every loader returns."""

    name: str
    graph: Graph
    x: Tensor
    """Features [N, F], float32; a torch sparse CSR tensor where that is smaller."""
    y: Tensor
    """int64 [N], -1 where unknown; or float32 [N, L] of 0 and 1 for multi-label data (NaN row: unknown)."""
    class_names: tuple[str, ...] = ()
    node_ids: tuple[str, ...] | tuple[int, ...] | None = None
    """The user's own names of the nodes; None: nodes are 0..N-1."""
    feature_names: tuple[str, ...] | None = None
    splits: FixedSplits | None = None
    directed_edge_index: Tensor | None = None
    """Edges exactly as the source has them, [2, E], where the source is directed or has self-loops."""
    graph_of_node: Tensor | None = None
    """int64 [N]: which of several disjoint graphs a node belongs to (PPI); None: there is only one."""
    provenance: Provenance = field(default_factory=lambda: Provenance("unknown"))

    @property
    def num_classes(self) -> int:
        """Classes (single-label) or labels (multi-label)."""
        if self.class_names:
            return len(self.class_names)
        return self.y.shape[1] if self.y.ndim == 2 else int(self.y.max().item()) + 1
