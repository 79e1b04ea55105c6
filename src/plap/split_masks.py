"""Which nodes' labels may be seen for what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class SplitLike(Protocol):
    """Boolean masks [N], as in :class:`plap.data.Split`. A test mask may be present; nothing reads it."""

    @property
    def train(self) -> Tensor:
        """Nodes whose labels the loss may see."""
        ...

    @property
    def val(self) -> Tensor:
        """Nodes whose labels decide when to stop."""
        ...


@dataclass(frozen=True, eq=False)
class HoldOut:
    """Two disjoint sets of nodes, boolean [N]."""

    train: Tensor
    val: Tensor


@dataclass(frozen=True, eq=False)
class BaggedSplit(HoldOut):
    """Training and validation nodes that each member of an ensemble divides anew.

    The member with the seed ``first`` has ``train`` and ``val`` themselves. Every other one has as many nodes
    of each stratum in both. Successive members hold different nodes of a stratum out, until each of them was
    held out at least once; then they are shuffled. See :func:`plap.data.splits.bagged`.
    """

    strata: Tensor
    """int64 [N]: nodes of one stratum are exchanged for one another."""
    first: int
    _known: dict[int, HoldOut] = field(default_factory=dict, repr=False)

    def of(self, seed: int) -> HoldOut:
        """How the member with this seed divides the nodes."""
        if seed not in self._known:
            self._known[seed] = self._divided(seed - self.first)
        return self._known[seed]

    def _divided(self, member: int) -> HoldOut:
        if member == 0:
            return HoldOut(self.train, self.val)
        either = self.train | self.val
        nodes = either.nonzero().squeeze(1).cpu().numpy()
        held_out = self.val.cpu().numpy()[nodes]
        _, stratum = np.unique(self.strata.cpu().numpy()[nodes], return_inverse=True)
        size, count = np.bincount(stratum), np.bincount(stratum, weights=held_out).astype(np.int64)
        turn, place = np.divmod(member, -(-size // np.maximum(count, 1)))
        keys = np.empty(nodes.size)
        for each in np.unique(turn):
            here = turn[stratum] == each
            keys[here] = np.random.default_rng(abs(int(each))).random(nodes.size)[here]
        keys[held_out & (turn[stratum] == 0)] = -1  # the first turn begins with the split itself
        order = np.lexsort((keys, stratum))
        rank = np.arange(nodes.size) - (np.cumsum(size) - size)[stratum[order]]
        group = stratum[order]
        chosen = (rank - place[group] * count[group]) % size[group] < count[group]
        val = torch.zeros_like(self.val)
        val[torch.from_numpy(nodes[order[chosen]]).to(val.device)] = True
        return HoldOut(either & ~val, val)


def split_for(split: SplitLike, seed: int) -> SplitLike:
    """What a run with this seed trains on: a bagged split's part for it, or the split itself."""
    return split.of(seed) if isinstance(split, BaggedSplit) else split
