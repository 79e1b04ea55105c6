"""Several relations between the same nodes: one graph whose edges know which relations they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph


@dataclass(frozen=True, eq=False)
class Relations:
    """What each relation contributes to the weight of each entry of a graph.

    Examples
    --------
    >>> calls, mails = Graph.from_edges([(0, 1)], num_nodes=3), Graph.from_edges([(0, 1), (1, 2)])
    >>> relations = Relations.of(mails, {"calls": calls, "mails": mails})
    >>> relations.graph(mails, {"calls": 2.0, "mails": 0.5}).weight.tolist()
    [2.5, 2.5, 0.5, 0.5]
    """

    names: tuple[str, ...]
    shares: Tensor
    """[R, entries]: the weight of an entry in each relation, 0 where it is not of it."""
    factors: Mapping[str, float] | None = None
    """What each relation was multiplied by, once that is decided."""

    @classmethod
    def of(cls, union: Graph, parts: Mapping[str, Graph]) -> Relations:
        """The relations ``parts`` within a graph that has all their edges."""
        n = union.num_nodes
        keys = union.receivers().long() * n + union.indices.long()
        shares = torch.zeros(len(parts), union.num_entries)
        for row, part in enumerate(parts.values()):
            wanted = part.receivers().long() * n + part.indices.long()
            at = torch.searchsorted(keys, wanted).clamp(max=max(keys.shape[0] - 1, 0))
            if not bool((keys[at] == wanted).all()):
                raise InputError(f"the relation {list(parts)[row]!r} has an edge that the graph has not")
            shares[row, at] = part.weight.float()
        return cls(tuple(parts), shares)

    def graph(self, union: Graph, factors: Mapping[str, float]) -> Graph:
        """The graph with each relation multiplied by its factor; relations without one count as they are."""
        return union.with_weight(
            self.combined(torch.tensor([float(factors.get(name, 1.0)) for name in self.names]))
        )

    def combined(self, factors: Tensor) -> Tensor:
        """Weights [entries] for factors [R]; differentiable."""
        return (factors[:, None] * self.shares).sum(0)
