from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from plap.data import FixedSplits, GraphData, Split, folds, split
from plap.data.splits import PRESETS, apportion, bagged
from plap.errors import InputError
from plap.graph import Graph
from plap.split_masks import BaggedSplit, HoldOut, split_for

Real = Callable[..., GraphData]
KINDS = ["stratified", "paper", "chien"]


@st.composite
def labelled(draw: st.DrawFn) -> Tensor:
    """Two to five classes of unequal sizes, some nodes without a label, shuffled."""
    sizes = draw(st.lists(st.integers(6, 60), min_size=2, max_size=5))
    unknown = draw(st.integers(0, 20))
    y = torch.cat([torch.full((size,), k) for k, size in enumerate(sizes)] + [torch.full((unknown,), -1)])
    order = np.random.default_rng(draw(st.integers(0, 99))).permutation(len(y))
    return y[torch.from_numpy(order)]


def drawn(y: Tensor, kind: str, seed: int, rates: tuple[float, float, float]) -> Split | None:
    """The split, or None where its rule leaves a set empty."""
    try:
        return split(y, kind, rates=rates, seed=seed)
    except InputError as error:
        if "empty" in str(error):
            return None
        raise


@pytest.mark.parametrize("kind", KINDS)
@given(y=labelled(), seed=st.integers(0, 9), rates=st.sampled_from([*PRESETS.values(), (0.5, 0.25, 0.25)]))
def test_disjoint_known_and_deterministic(
    kind: str, y: Tensor, seed: int, rates: tuple[float, float, float]
) -> None:
    first, again = drawn(y, kind, seed, rates), drawn(y, kind, seed, rates)
    if first is None or again is None:
        assert first is again is None
        return
    assert first.digest == again.digest
    masks = torch.stack([first.train, first.val, first.test]).int()
    assert (masks.sum(0) <= 1).all()
    assert (masks.sum(0)[y < 0] == 0).all()
    assert (first.kind, first.seed, first.rates) == (kind, seed, rates)


@given(y=labelled(), rates=st.sampled_from([(0.6, 0.2, 0.2), (0.5, 0.25, 0.25), (0.1, 0.1, 0.8)]))
def test_stratified_shares_every_class_and_loses_no_node(
    y: Tensor, rates: tuple[float, float, float]
) -> None:
    result = drawn(y, "stratified", 0, rates)
    if result is None:
        return
    assert sum(result.sizes) == int((y >= 0).sum())
    for k in range(int(y.max()) + 1):
        nodes = y == k
        for mask, rate in zip((result.train, result.val, result.test), rates, strict=True):
            assert abs(int((mask & nodes).sum()) - rate * int(nodes.sum())) < 1
        assert (result.train & nodes).any()


@given(y=labelled(), seed=st.integers(0, 5))
def test_chien_counts(y: Tensor, seed: int) -> None:
    labelled_nodes, classes = int((y >= 0).sum()), int(y.max()) + 1
    per_class = round(0.3 * labelled_nodes / classes)
    result = split(y, "chien", rates=(0.3, 0.2, 0.5), seed=seed)
    for k in range(classes):
        assert int((result.train & (y == k)).sum()) == min(per_class, int((y == k).sum()))
    assert result.sizes[1] == round(0.2 * labelled_nodes)
    assert sum(result.sizes) == labelled_nodes


@given(y=labelled(), seed=st.integers(0, 5))
def test_paper_counts_and_the_classes_it_drops(y: Tensor, seed: int) -> None:
    result = drawn(y, "paper", seed, (0.6, 0.2, 0.2))
    if result is None:
        return
    per_class = int((y >= 0).sum()) / (int(y.max()) + 1)
    train, val = int(per_class * 0.6), int(per_class * 0.2)
    for k in range(int(y.max()) + 1):
        nodes = y == k
        counts = [int((mask & nodes).sum()) for mask in (result.train, result.val, result.test)]
        left = int(nodes.sum()) - train - val
        assert counts == ([train, val, left] if left > 0 else [0, 0, 0])


@pytest.mark.parametrize(
    ("name", "sizes", "test_per_class", "dropped"),
    [
        ("texas", (63, 21, 80), [5, 0, 0, 73, 2], [1, 18]),
        ("wisconsin", (60, 20, 108), None, None),
    ],
)
def test_paper_split_of_webkb(
    name: str,
    sizes: tuple[int, int, int],
    test_per_class: list[int] | None,
    dropped: list[int] | None,
    real: Real,
) -> None:
    data = real(name)
    result = split(data, "paper", preset="dense", seed=2021)
    assert result.sizes == sizes
    in_any = result.train | result.val | result.test
    lost = [int((data.y == k).sum()) for k in range(5) if not (in_any & (data.y == k)).any()]
    test = data.y[result.test].bincount(minlength=5)
    if test_per_class is not None:
        assert sorted(test.tolist()) == sorted(test_per_class)
    if dropped is None:
        assert (len(lost), sum(lost)) == (3, 63)
        assert float(test.max()) / sizes[2] == pytest.approx(0.722, abs=5e-4)
    else:
        assert sorted(lost) == dropped


def test_paper_split_is_the_published_one(real: Real) -> None:
    """The published rule, written down a second time node by node."""
    y = real("actor").y.numpy()
    state = np.random.RandomState(2021)
    train, val = (int(len(y) / 5 * rate) for rate in (0.6, 0.2))
    expected = {"train": set[int](), "val": set[int](), "test": set[int]()}
    for k in range(5):
        members = [i for i, label in enumerate(y) if label == k]
        if len(members) > train + val:
            order = [members[i] for i in state.permutation(len(members))]
            expected["train"] |= set(order[:train])
            expected["val"] |= set(order[train : train + val])
            expected["test"] |= set(order[train + val :])
    result = split(real("actor"), "paper", seed=2021)
    for name, nodes in expected.items():
        assert set(getattr(result, name).nonzero().flatten().tolist()) == nodes
    assert int((~(result.train | result.val | result.test)).sum()) == 853


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_is_another_split(kind: str) -> None:
    y = torch.arange(200) % 4
    assert split(y, kind, seed=0).digest != split(y, kind, seed=1).digest


def test_default_is_stratified_dense() -> None:
    y = torch.arange(100) % 5
    assert split(y).digest == split(y, "stratified", preset="dense", seed=0).digest
    assert split(y).sizes == (60, 20, 20)


def test_digest_tells_the_sets_apart_but_not_the_rule() -> None:
    a, b = torch.tensor([True, False, False]), torch.tensor([False, True, False])
    c = torch.tensor([False, False, True])
    assert Split("x", a, b, c).digest == Split("y", a, b, c, seed=3).digest
    assert Split("x", a, b, c).digest != Split("x", a, c, b).digest


def test_a_tiny_class_still_gets_a_training_node() -> None:
    y = torch.tensor([0] * 200 + [1] * 3)
    result = split(y, preset="sparse")
    assert (result.train & (y == 1)).sum() == 1
    assert sum(result.sizes) == 203


@given(
    st.integers(0, 1000),
    st.lists(st.integers(1, 100), min_size=3, max_size=3).map(
        lambda parts: [Fraction(p, sum(parts)) for p in parts]
    ),
)
def test_apportionment_keeps_quota(total: int, shares: list[Fraction]) -> None:
    counts = apportion(total, shares)
    assert sum(counts) == total
    assert all(abs(count - total * share) < 1 for count, share in zip(counts, shares, strict=True))


def public_data(y: list[int]) -> GraphData:
    masks = torch.eye(4, dtype=torch.bool)
    splits = FixedSplits(masks[:, :2], masks[:, 1:3], masks[:, 2:])
    return GraphData(
        "four", Graph.from_edges([(0, 1)], num_nodes=4), torch.ones(4, 1), torch.tensor(y), splits=splits
    )


def test_public_picks_the_columns_that_came_with_the_data() -> None:
    data = public_data([0, 1, 0, 1])
    first, second = split(data, "public"), split(data, "public", index=1)
    assert first.train.nonzero().item() == 0
    masks = (second.train, second.val, second.test)
    assert [mask.nonzero().item() for mask in masks] == [1, 2, 3]
    assert (second.index, second.seed, second.rates) == (1, None, None)


def test_public_leaves_out_unknown_labels() -> None:
    with pytest.raises(InputError, match="leaves the training set empty"):
        split(public_data([-1, 1, 0, 1]), "public")


def test_public_of_a_real_set(real: Real) -> None:
    assert split(real("cora"), "public").sizes == (140, 500, 1000)
    digests = {split(real("texas"), "public", index=k).digest for k in range(10)}
    assert len(digests) == 10


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"kind": "random"}, "kind of split must be one of"),
        ({"rates": (0.5, 0.5)}, "rates must be three numbers"),
        ({"rates": (0.5, 0.5, 0.0)}, "positive and of sum 1"),
        ({"rates": (0.5, 0.4, 0.2)}, "positive and of sum 1"),
        ({"rates": (-0.5, 1.0, 0.5)}, "positive and of sum 1"),
        ({"rates": (float("nan"), 0.5, 0.5)}, "rates must be three numbers"),
        ({"rates": ("a", "b", "c")}, "rates must be three numbers"),
        ({"rates": (0.6, 0.2, 0.2), "preset": "dense"}, "either rates or preset"),
        ({"preset": "medium"}, "preset must be one of sparse, dense"),
        ({"seed": -1}, "seed must be an integer"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"kind": "paper", "seed": 2**32}, "seed must be at most"),
        ({"kind": "public"}, "came without public splits"),
        ({"rates": (0.001, 0.001, 0.998)}, "leaves the validation set empty"),
        ({"kind": "paper", "preset": "sparse"}, "leaves the training set empty"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        split(torch.arange(20) % 2, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("y", [torch.rand(5, 2), torch.zeros(5, 2, dtype=torch.long), torch.full((5,), -1)])
def test_labels_that_cannot_be_split_are_refused(y: Tensor) -> None:
    with pytest.raises(InputError):
        split(y)


@pytest.mark.parametrize("y", [np.array([0, 1] * 9), [0, 1] * 9])
def test_labels_of_another_type_are_refused_by_name(y: Any) -> None:
    with pytest.raises(
        InputError, match=r"data must be a GraphData or a tensor of labels, not (ndarray|list)"
    ):
        split(y)


def test_a_public_index_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match="has the public splits 0 to 1, not 2"):
        split(public_data([0, 1, 0, 1]), "public", index=2)


def test_numbers_are_shared_out_from_small_to_large() -> None:
    y = torch.arange(200.0)
    y[50] = torch.nan
    found = split(y, seed=3)
    assert sum(found.sizes) == 199
    assert not bool((found.train | found.val | found.test)[50])
    for mask in (found.train, found.val, found.test):
        assert float(y[mask].mean()) == pytest.approx(99.5, abs=8)
    with pytest.raises(InputError, match="a random split needs one class per node"):
        split(y, "paper")


@given(y=labelled(), count=st.integers(2, 6), seed=st.integers(0, 9))
def test_folds_hold_every_labelled_node_out_once(y: Tensor, count: int, seed: int) -> None:
    found = folds(y, count, seed=seed)
    known = (y >= 0).nonzero().squeeze(1).numpy()
    np.testing.assert_array_equal(np.sort(np.concatenate([held_out for _, held_out in found])), known)
    for train, held_out in found:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, held_out])), known)
        sizes = np.bincount(y[held_out].numpy(), minlength=int(y.max()) + 1)
        quotas = np.bincount(y[known].numpy()) / count
        assert (np.abs(sizes - quotas) < 1).all()


def test_folds_of_numbers_and_of_too_few() -> None:
    numbers = np.array([*np.linspace(0, 1, 40), np.nan])
    means = [numbers[held_out].mean() for _, held_out in folds(numbers, 4)]
    assert max(means) - min(means) < 0.2
    with pytest.raises(
        InputError, match="count must be between 2 and the number of labelled nodes, 3, not 5"
    ):
        folds(["a", "b", None, "a"], 5)


def test_sets_that_share_a_node_are_refused() -> None:
    first, rest = torch.arange(9) < 5, torch.arange(9) >= 5
    none = torch.zeros(9, dtype=torch.bool)
    with pytest.raises(InputError, match="train and test must not share a node, but both contain node 0"):
        Split("mine", first, rest, first)
    with pytest.raises(InputError, match="val and test must not share a node, but both contain node 5"):
        Split("mine", first, rest, rest)
    for wrong in (torch.arange(3), first.float(), first[:4], [True] * 9):
        with pytest.raises(InputError, match="val must be a boolean mask"):
            Split("mine", first, wrong, none)  # type: ignore[arg-type]


@given(
    y=labelled(), seed=st.integers(0, 10**6), first=st.integers(0, 5), preset=st.sampled_from(sorted(PRESETS))
)
def test_members_exchange_training_and_validation_nodes_of_each_class(
    y: Tensor, seed: int, first: int, preset: str
) -> None:
    rates = (0.4, 0.4, 0.2) if preset == "sparse" else PRESETS[preset]
    parts = drawn(y, "stratified", seed % 100, rates)
    if parts is None:
        return
    bags = bagged(parts, y, first)
    assert bags.of(first).train.equal(parts.train)
    assert bags.of(first).val.equal(parts.val)
    member = bags.of(seed)
    assert not (member.train & member.val).any()
    assert (member.train | member.val).equal(parts.train | parts.val)
    for label in range(int(y.max()) + 1):
        for name in ("train", "val"):
            mine, given_mask = getattr(member, name), getattr(parts, name)
            assert int((mine & (y == label)).sum()) == int((given_mask & (y == label)).sum())
    assert member.val.equal(bags.of(seed).val)


def test_each_node_is_held_out_once_before_any_is_held_out_again() -> None:
    y = torch.arange(120) % 3
    parts = split(y, rates=(0.6, 0.2, 0.2), seed=2)
    bags = bagged(parts, y, first=10)
    for turn in (0, 4, 8):
        counts = torch.stack([bags.of(10 + turn + k).val for k in range(4)]).sum(0)
        assert counts.int().equal((parts.train | parts.val).int())
    assert not bags.of(14).val.equal(bags.of(10).val)


def test_the_labels_of_test_nodes_do_not_matter_to_the_bags() -> None:
    y = torch.rand(200, generator=torch.Generator().manual_seed(0))
    parts = split(y, seed=3)
    other = torch.where(parts.test, 1 - y, y)
    assert all(bagged(parts, y).of(k).val.equal(bagged(parts, other).of(k).val) for k in range(6))


def test_a_plain_split_is_the_same_for_every_seed() -> None:
    parts = split(torch.arange(40) % 2)
    assert split_for(parts, 3) is parts
    assert isinstance(bagged(parts, torch.arange(40) % 2), BaggedSplit)


def test_strata_that_are_divided_differently_have_turns_of_their_own() -> None:
    y = torch.tensor([0] * 20 + [1] * 9)
    train = torch.zeros(29, dtype=torch.bool)
    train[:10] = train[20:28] = True
    bags = bagged(HoldOut(train, ~train), y)
    counts = torch.stack([bags.of(seed).val for seed in range(18)]).sum(0)
    assert counts[:20].tolist() == [9] * 20
    assert counts[20:].tolist() == [2] * 9


def test_random_splits_have_no_index() -> None:
    with pytest.raises(InputError, match="index is for public splits, not for stratified ones: seed draws"):
        split(torch.tensor([0, 1] * 10), index=7)


def test_public_splits_have_no_rates() -> None:
    data = public_data([0, 1, 0, 1])
    with pytest.raises(InputError, match="rates and preset are for random splits"):
        split(data, "public", preset="sparse")
    with pytest.raises(InputError, match="rates and preset are for random splits"):
        split(data, "public", rates=(0.1, 0.1, 0.8))
