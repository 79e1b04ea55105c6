"""Labelled nodes set aside for validation, where there is no test set."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from plap.data.apportion import apportion
from plap.data.seeds import generator
from plap.errors import InputError


@dataclass(frozen=True, eq=False)
class HoldOut:
    """Two disjoint sets of nodes, boolean [N]."""

    train: Tensor
    val: Tensor


def hold_out(y: Tensor, share: float, seed: int) -> HoldOut:
    """Set ``share`` of every class's labelled nodes aside; each class keeps at least one for training.

    Parameters
    ----------
    y : Tensor, int64 [N], -1 where unknown; or floats [N, L] with NaN where unknown
        Of several labels a node, the nodes are shared out as if they were of one class.
    share : float between 0 and 1
    seed : int

    Examples
    --------
    >>> sets = hold_out(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, -1]), share=0.25, seed=0)
    >>> int(sets.train.sum()), int(sets.val.sum())
    (6, 2)
    """
    if not 0 < share < 1:
        raise InputError(f"the share for validation must lie between 0 and 1, not {share!r}")
    classes = (y if y.ndim == 1 else torch.where(y.isnan().any(1), -1, 0)).numpy()
    rng = generator(seed)
    part = Fraction(share).limit_denominator(10**6)
    train, val = (np.zeros(classes.shape[0], dtype=bool) for _ in range(2))
    for label in np.unique(classes[classes >= 0]):
        order = rng.permutation(np.flatnonzero(classes == label))
        kept, _ = apportion(order.size, (1 - part, part))
        train[order[:kept]] = True
        val[order[kept:]] = True
    if not val.any():
        raise InputError("there are too few labels to set one aside for validation")
    return HoldOut(torch.from_numpy(train), torch.from_numpy(val))
