"""Training, validation and test sets: each rule by its name, each a pure function of labels and seed."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.data.dataset import GraphData
from plap.data.labels import encode
from plap.data.sampling import check_seed, generator
from plap.data.tasks import Task
from plap.errors import InputError
from plap.split_masks import BaggedSplit, HoldOut, SplitLike

Rates = tuple[float, float, float]

PRESETS: dict[str, Rates] = {"sparse": (0.025, 0.025, 0.95), "dense": (0.6, 0.2, 0.2)}
"""The paper's two settings: training, validation, test."""

_TRAIN, _VAL, _TEST = 1, 2, 3


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of nodes; a node may be in none."""

    kind: str
    train: Tensor
    """Boolean [N], as are the other two."""
    val: Tensor
    test: Tensor
    seed: int | None = None
    """What the random kinds were drawn with; None for ``public``."""
    index: int | None = None
    """Which of the splits that came with the data, for ``public``."""
    rates: Rates | None = None
    digest: str = field(init=False)
    """SHA-256 over the three sets: equal splits have equal digests."""

    def __post_init__(self) -> None:
        masks = {"train": self.train, "val": self.val, "test": self.test}
        for name, mask in masks.items():
            if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != (len(self.train),):
                raise InputError(
                    f"{name} must be a boolean mask, one value per node, as long as those of the other sets"
                )
        for one, other in itertools.combinations(masks, 2):
            shared = (masks[one] & masks[other]).nonzero()
            if len(shared):
                raise InputError(
                    f"{one} and {other} must not share a node, but both contain node {int(shared[0])}"
                )
        code = _TRAIN * self.train.byte() + _VAL * self.val.byte() + _TEST * self.test.byte()
        sha = hashlib.sha256(f"plap.Split/1 {code.shape[0]} ".encode())
        sha.update(code.cpu().numpy().tobytes())
        object.__setattr__(self, "digest", sha.hexdigest())

    def __repr__(self) -> str:
        """How it was made, and the sizes of the three sets."""
        origin = f", seed={self.seed}" if self.seed is not None else ""
        origin += f", index={self.index}" if self.index is not None else ""
        train, val, test = self.sizes
        return f"Split({self.kind!r}{origin}, {train} training, {val} validation and {test} test nodes)"

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Nodes for training, validation and testing."""
        return int(self.train.sum()), int(self.val.sum()), int(self.test.sum())


def split(
    data: GraphData | Tensor,
    kind: str = "stratified",
    *,
    rates: Rates | None = None,
    preset: str | None = None,
    seed: int = 0,
    index: int = 0,
) -> Split:
    """Split the labelled nodes into training, validation and test sets.

    Parameters
    ----------
    data : GraphData, or Tensor of shape [N]
        Labels, integers with -1 where unknown, or floats with NaN: such a node is in no set. ``public`` needs
        a ``GraphData``.
    kind : {"stratified", "paper", "chien", "public"}
        With N labelled nodes in C classes (C = the largest label + 1):

        - ``stratified``: each class is shared out in proportion to the rates, exactly, by largest
          remainder; a class that would get no training node by that rule gets one. No node is left out.
          Numbers are shared out in the same way, by ten groups from the smallest to the largest.
        - ``paper``: what the published code does. int(N/C · rate) nodes *of each class* for training and
          as many by the validation rate, the rest of the class for testing; but a class with no more
          nodes than these two numbers together **falls out of all three sets**, training is balanced
          whatever the rates say, and what is left for testing is not. Texas keeps 3 of its 5 classes,
          Wisconsin 2 of 5, Actor 4 of 5, so numbers on this split compare with no others. Seed 2021 gives
          the very split of the paper, which used one for all runs.
        - ``chien``: GPRGNN's rule. round(train · N/C) nodes of each class (all of a smaller one) for
          training; of the rest, shuffled together, round(val · N) for validation, what is left to test.
        - ``public``: the ``index``-th split that came with the data: geom-gcn's or the heterophilous
          graphs' ten, Planetoid's, PPI's or OGB's one.
    rates : (train, val, test), optional
        Positive and of sum 1.
    preset : {"sparse", "dense"}, optional
        2.5/2.5/95 % or 60/20/20 % in place of ``rates``; dense if neither is given.
    seed : int
    index : int
        For ``public`` only.

    Examples
    --------
    >>> y = torch.tensor([0] * 10 + [1] * 5 + [-1])
    >>> split(y, rates=(0.6, 0.2, 0.2)).sizes
    (9, 3, 3)
    """
    if kind == "public":
        if rates is not None or preset is not None:
            raise InputError("rates and preset are for random splits, not for the public ones")
        return _public(data, index)
    if kind not in _RULES:
        raise InputError(f"kind of split must be one of {', '.join([*_RULES, 'public'])}, not {kind!r}")
    if index:
        raise InputError(f"index is for public splits, not for {kind} ones: seed draws another of these")
    shares = _shares(rates, preset)
    labels = _labels(data, kind)
    code = np.zeros(labels.shape[0], dtype=np.uint8)
    _RULES[kind](labels.cpu().numpy(), shares, seed, code)
    masks = _masks(code, labels.device)
    train, val, test = (float(share) for share in shares)
    return _checked(Split(kind, *masks, seed=int(seed), rates=(train, val, test)))


def _shares(rates: Rates | None, preset: str | None) -> tuple[Fraction, Fraction, Fraction]:
    """The rates as exact fractions, so that 0.29 of 100 is 29."""
    if rates is not None and preset is not None:
        raise InputError("give either rates or preset, not both")
    if preset is not None and preset not in PRESETS:
        raise InputError(f"preset must be one of {', '.join(PRESETS)}, not {preset!r}")
    values = PRESETS[preset or "dense"] if rates is None else tuple(rates)
    try:
        train, val, test = (Fraction(float(value)).limit_denominator(10**6) for value in values)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"rates must be three numbers (train, val, test), not {rates!r}") from None
    if min(train, val, test) <= 0 or abs(train + val + test - 1) > Fraction(1, 10**5):
        raise InputError(f"rates must be positive and of sum 1, not {tuple(values)}")
    return train, val, test


def _labels(data: GraphData | Tensor, kind: str) -> Tensor:
    y = data.y if isinstance(data, GraphData) else data
    if isinstance(y, Tensor) and y.ndim == 1 and y.is_floating_point() and kind == "stratified":
        y = Task.of(y).strata(y)
    if not isinstance(y, Tensor):
        raise InputError(f"data must be a GraphData or a tensor of labels, not {type(y).__name__}")
    if y.ndim != 1 or y.dtype.is_floating_point or y.dtype == torch.bool:
        raise InputError(
            "a random split needs one class per node; where a node may have several labels, a column 'split' "
            "with train, val and test must say which nodes are for what"
        )
    if not bool((y >= 0).any()):
        raise InputError("there is nothing to split: no node has a known label")
    return y


def _public(data: GraphData | Tensor, index: int) -> Split:
    if not isinstance(data, GraphData) or data.splits is None:
        name = data.name if isinstance(data, GraphData) else "a tensor of labels"
        raise InputError(f"{name} came without public splits")
    count = data.splits.train.shape[1]
    if isinstance(index, bool) or not isinstance(index, int | np.integer) or not 0 <= index < count:
        raise InputError(f"{data.name} has the public splits 0 to {count - 1}, not {index!r}")
    train, val, test = (mask[:, int(index)] & data.known for mask in data.splits.masks)
    return _checked(Split("public", train, val, test, index=int(index)))


def _masks(code: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    train, val, test = (torch.from_numpy(code == part).to(device) for part in (_TRAIN, _VAL, _TEST))
    return train, val, test


def _checked(result: Split) -> Split:
    for name, size in zip(("training", "validation", "test"), result.sizes, strict=True):
        if size == 0:
            raise InputError(f"the {result.kind} split leaves the {name} set empty")
    return result


def _classes(y: np.ndarray) -> list[np.ndarray]:
    """The nodes of each class, ascending, for the classes 0 to the largest label."""
    return [np.flatnonzero(y == k) for k in range(int(y.max()) + 1)]


_Shares = tuple[Fraction, Fraction, Fraction]


def _stratified(y: np.ndarray, shares: _Shares, seed: int, code: np.ndarray) -> None:
    rng = generator(seed)
    owed = Fraction(0)  # by how much the test set is behind its share so far; ties are its turn then
    for nodes in _classes(y):
        if owed > 0:
            train, test, val = apportion(nodes.size, (shares[0], shares[2], shares[1]))
        else:
            train, val, test = apportion(nodes.size, shares)
        owed += nodes.size * shares[2] - test
        order = rng.permutation(nodes)
        code[order] = _TEST
        code[order[: train + val]] = _VAL
        code[order[:train]] = _TRAIN


def _paper(y: np.ndarray, shares: _Shares, seed: int, code: np.ndarray) -> None:
    # The published code's own generator and float arithmetic: the same seed gives the same split.
    rng = np.random.RandomState(check_seed(seed, 2**32 - 1))
    classes = _classes(y)
    per_class = int((y >= 0).sum()) / len(classes)
    train, val = int(per_class * float(shares[0])), int(per_class * float(shares[1]))
    for nodes in classes:
        if nodes.size <= train + val:
            continue
        order = nodes[rng.permutation(nodes.size)]
        code[order] = _TEST
        code[order[: train + val]] = _VAL
        code[order[:train]] = _TRAIN


def _chien(y: np.ndarray, shares: _Shares, seed: int, code: np.ndarray) -> None:
    rng = generator(seed)
    classes = _classes(y)
    labelled = int((y >= 0).sum())
    train = round(float(shares[0]) * labelled / len(classes))
    val = round(float(shares[1]) * labelled)
    orders = [rng.permutation(nodes) for nodes in classes]
    rest = rng.permutation(np.concatenate([order[train:] for order in orders]))
    code[np.concatenate([order[:train] for order in orders])] = _TRAIN
    code[rest[:val]] = _VAL
    code[rest[val:]] = _TEST


_RULES: dict[str, Callable[[np.ndarray, _Shares, int, np.ndarray], None]] = {
    "stratified": _stratified,
    "paper": _paper,
    "chien": _chien,
}


def bagged(split: SplitLike, y: Tensor, first: int = 0) -> BaggedSplit:
    """The split for members that each divide its training and validation nodes anew.

    Examples
    --------
    >>> sets = hold_out(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, -1]), share=0.25, seed=0)
    >>> bags = bagged(sets, torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, -1]))
    >>> [bags.of(seed).val.nonzero().flatten().tolist() for seed in range(4)]
    [[3, 4], [2, 6], [1, 7], [0, 5]]
    """
    either = split.train | split.val
    strata = torch.full(either.shape, -1, device=either.device)
    strata[either] = Task.of(y[either]).strata(y[either])  # test labels stay unseen
    return BaggedSplit(split.train, split.val, strata, first)


def hold_out(y: Tensor, share: float, seed: int) -> HoldOut:
    """Set ``share`` of every class's labelled nodes aside; each class keeps at least one for training.

    Parameters
    ----------
    y : Tensor, int64 [N], -1 where unknown; or floats [N, L] with NaN where unknown
        With several labels per node, the nodes are shared out as if they were of one class.
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
    classes = Task.of(y).strata(y).numpy()
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


def folds(y: Any, count: int = 5, *, seed: int = 0) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Share the labelled nodes out into ``count`` sets, each of which is held out once.

    Every class has its share in each set, to within one node; numbers are shared out by ten groups from the
    smallest to the largest. A node without a label is in no set.

    Parameters
    ----------
    y : sequence, array or tensor, shape [N]
        Labels as :class:`plap.PGNNClassifier` or, of floats, :class:`plap.PGNNRegressor` takes them.
    count : int
    seed : int

    Returns
    -------
    list of (training nodes, held-out nodes)
        Numbers of nodes, ascending; what scikit-learn takes as ``cv``.

    Examples
    --------
    >>> [held_out.tolist() for _, held_out in folds([0, 0, 1, 1, None, 0, 1], 3)]
    [[5, 6], [0, 3], [1, 2]]
    """
    values = y if isinstance(y, Tensor) else np.asarray(y)
    if values.dtype in (torch.float32, torch.float64, np.float32, np.float64):
        labels = torch.as_tensor(values)
        strata = Task.of(labels).strata(labels).numpy()
    else:
        strata = encode(y)[1]
    known = int((strata >= 0).sum())
    if not 2 <= count <= known:
        raise InputError(f"count must be between 2 and the number of labelled nodes, {known}, not {count}")
    rng = generator(seed)
    order = [rng.permutation(np.flatnonzero(strata == label)) for label in range(int(strata.max()) + 1)]
    part = np.full(strata.size, -1)
    part[np.concatenate(order)] = np.arange(known) % count
    return [
        (np.flatnonzero((part >= 0) & (part != fold)), np.flatnonzero(part == fold)) for fold in range(count)
    ]


def apportion(total: int, shares: Sequence[Fraction]) -> tuple[int, ...]:
    """Share out ``total`` by largest remainder: each part is its quota rounded down or up.

    Equal remainders are served in order. If the first part would get nothing of a positive total, it gets
    one from the part that was rounded up with the smallest remainder, which keeps every part within one
    of its quota.

    Examples
    --------
    >>> rates = Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)
    >>> apportion(10, rates), apportion(9, rates), apportion(1, rates)
    ((6, 2, 2), (5, 2, 2), (1, 0, 0))
    >>> apportion(10, (Fraction(1, 40), Fraction(1, 40), Fraction(38, 40)))
    (1, 0, 9)
    """
    quotas = [total * share / sum(shares) for share in shares]
    counts = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(shares)), key=lambda k: counts[k] - quotas[k])
    rounded_up = by_remainder[: total - sum(counts)]
    if total and counts[0] == 0 and 0 not in rounded_up:
        rounded_up = [0, *rounded_up[:-1]]
    for k in rounded_up:
        counts[k] += 1
    return tuple(counts)
