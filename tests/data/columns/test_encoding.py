"""Encoders against numpy and scikit-learn, and their edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import murmurhash3_32

from plap.data.columns.cells import Cells, Encoder
from plap.data.columns.dates import DateEncoder
from plap.data.columns.numbers import CLIP, NumberEncoder, heavy_tail
from plap.data.columns.vectors import VectorEncoder
from plap.data.columns.words import (
    BUCKETS,
    FREQUENT_LEVELS,
    BooleanEncoder,
    CategoryEncoder,
    TextEncoder,
    least_count,
)

RANDOM = np.random.default_rng(0)


def write(encoder: Encoder, values: Any) -> NDArray[np.float32]:
    out = np.zeros((len(values), len(encoder.feature_names("c"))), dtype=np.float32)
    encoder.write(Cells(values), out)
    return out


def test_light_tails_are_standardised_as_in_scikit_learn() -> None:
    values = RANDOM.normal(50, 7, 500)
    encoder = NumberEncoder.fit(Cells(values))
    assert encoder.shape == "linear"
    expected = StandardScaler().fit_transform(values[:, None])
    np.testing.assert_allclose(write(encoder, values), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "tail", "shape"),
    [
        (np.exp(RANDOM.normal(10, 1, 500)), "heavy right tail", "log"),
        (1e-9 * np.exp(RANDOM.normal(0, 1.5, 500)), "heavy right tail", "log"),
        (-np.exp(RANDOM.normal(0, 1.5, 500)), "heavy left tail", "log"),
        (1000 + RANDOM.standard_cauchy(500), "heavy left and right tails", "quantile"),
        (100 - np.exp(RANDOM.normal(0, 1.5, 500)), "heavy left tail", "quantile"),
        (np.where(RANDOM.random(500) < 0.7, 0, np.exp(RANDOM.normal(3, 1.5, 500))), "heavy right tail", None),
        (RANDOM.uniform(size=500), "", "linear"),
        (RANDOM.normal(size=500), "", "linear"),
        (np.r_[RANDOM.normal(size=500), 1e6], "heavy right tail", None),
        (RANDOM.poisson(3, 500).astype(float), "", "linear"),
    ],
)
def test_tails_decide_the_shape(values: NDArray[np.float64], tail: str, shape: str | None) -> None:
    encoder = NumberEncoder.fit(Cells(values))
    assert (heavy_tail(values), encoder.tail) == (tail, tail)
    assert shape is None or encoder.shape == shape
    features = write(encoder, values)
    assert abs(features.mean()) < 1e-3
    assert abs(features.std() - 1) < 0.02
    order = np.argsort(values, kind="stable")
    assert (np.diff(features[order, 0]) >= 0).all()


def test_the_log_rule_does_not_depend_on_the_unit() -> None:
    values = np.exp(RANDOM.normal(0, 2, 300))
    in_metres, in_kilometres = (NumberEncoder.fit(Cells(values * factor)) for factor in (1, 1e-3))
    np.testing.assert_allclose(write(in_metres, values), write(in_kilometres, values * 1e-3), atol=1e-5)


def test_missing_numbers_get_the_median_and_a_mark() -> None:
    values = np.array([1.0, 2.0, np.nan, 6.0])
    features = write(NumberEncoder.fit(Cells(values)), values)
    assert features[2, 0] == features[1, 0]
    assert list(features[:, 1]) == [0, 0, 1, 0]
    unmarked = NumberEncoder.fit(Cells(values[:2]))
    assert unmarked.feature_names("c") == ["c"]
    assert np.isfinite(write(unmarked, values)).all()


@pytest.mark.parametrize(
    "values",
    [
        [1e308, -1e308, 0.0],
        [1e-310, 0.0, 5e-324],
        [1.0, 2, 3, 4, 5, 1e308],
        [2.0**60, 2.0**60 + 512],
        [-5e-324, 1e308],
    ],
)
def test_extreme_numbers_stay_finite(values: list[float]) -> None:
    features = write(
        NumberEncoder.fit(Cells(np.array(values))), np.array([*values, 1e308, -1e308, 0.0, np.nan])
    )
    assert np.isfinite(features).all()
    assert np.abs(features).max() <= CLIP


def test_numbers_without_variation_leave_only_the_mark() -> None:
    encoder = NumberEncoder.fit(Cells(np.array([5.0, np.nan, 5.0])))
    assert encoder.feature_names("c") == ["c is missing"]
    assert NumberEncoder.fit(Cells(np.array([5.0, 5.0]))).feature_names("c") == []
    assert NumberEncoder.fit(Cells(np.array([np.nan]))).feature_names("c") == []


def test_booleans() -> None:
    values = np.array([1.0, 0.0, np.nan, 1.0, 1.0])
    features = write(BooleanEncoder.fit(Cells(values)), values)
    np.testing.assert_array_equal(features, [[1, 0], [0, 0], [0.75, 1], [1, 0], [1, 0]])
    assert BooleanEncoder.fit(Cells(np.ones(3))).feature_names("c") == []


def test_categories_are_one_hot_as_in_scikit_learn() -> None:
    values = pl.Series(RANDOM.choice(list("abc"), 200))
    encoder = CategoryEncoder.fit(Cells(values))
    order = np.argsort(encoder.levels)
    expected = OneHotEncoder(sparse_output=False).fit_transform(values.to_numpy()[:, None])
    np.testing.assert_array_equal(write(encoder, values)[:, order], expected)


def test_rare_and_unseen_levels_share_a_feature_and_missing_has_its_own() -> None:
    encoder = CategoryEncoder.fit(Cells(pl.Series(["a", "a", "b", "b", "rare", None])))
    assert encoder.feature_names("c") == ["c=a", "c=b", "c=other", "c is missing"]
    values = pl.Series(["b", "rare", "new", None])
    np.testing.assert_array_equal(
        write(encoder, values), [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    )
    assert encoder.write(Cells(values), np.zeros((4, 4), dtype=np.float32)) == 2


def test_unseen_and_missing_levels_are_zero_where_nothing_was_trained_for_them() -> None:
    encoder = CategoryEncoder.fit(Cells(pl.Series(["a", "a", "b", "b"])))
    np.testing.assert_array_equal(write(encoder, pl.Series(["a", "new", None])), [[1, 0], [0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("trained", "read", "features"),
    [
        (["10", "20"], ["10.0", "20.00", "10.5", "010"], [0, 1, None, None]),
        (["10.0", "20.0"], ["10", "20", "20.0"], [0, 1, 1]),
        (["1", "1.0"], ["1", "1.0", "1.00"], [0, 1, None]),
        (["-3", "v1"], ["-3.0", "v1.0", ".0", "1."], [0, None, None, None]),
    ],
)
def test_a_whole_number_is_the_same_level_with_and_without_decimals(
    trained: list[str], read: list[str], features: list[int | None]
) -> None:
    """pandas writes 10 as 10.0 as soon as another row of the column has no value."""
    encoder = CategoryEncoder(tuple(trained), other=False, buckets=0, indicator=False, rare=0)
    expected = [[float(k == feature) for k in range(2)] for feature in features]
    assert write(encoder, pl.Series(read)).tolist() == expected


def test_levels_that_tell_nothing_apart_give_no_feature() -> None:
    assert CategoryEncoder.fit(Cells(pl.Series(["a", "b", "c"]))).feature_names("c") == []
    assert CategoryEncoder.fit(Cells(pl.Series(["a", "a"]))).feature_names("c") == []
    encoder = CategoryEncoder.fit(Cells(pl.Series(["a", "b", None])))
    assert encoder.feature_names("c") == ["c is missing"]
    np.testing.assert_array_equal(write(encoder, pl.Series(["a", None])), [[0], [1]])


def test_many_levels_are_hashed_into_a_bounded_width() -> None:
    names = [f"town {k}" for k in range(300)]
    values = pl.Series([name for k, name in enumerate(names) for _ in range(330 - k)])
    encoder = CategoryEncoder.fit(Cells(values))
    assert encoder.levels == tuple(names[:FREQUENT_LEVELS])
    features = write(encoder, pl.Series([*names, "never seen"]))
    assert features.shape == (301, FREQUENT_LEVELS + BUCKETS)
    assert (features.sum(axis=1) == 1).all()
    assert (features[FREQUENT_LEVELS:, FREQUENT_LEVELS:].sum(axis=0) > 0).all()
    bucket = murmurhash3_32("town 200", positive=True) % BUCKETS
    assert features[200, FREQUENT_LEVELS + bucket] == 1


@pytest.mark.parametrize(("rows", "count"), [(1, 2), (200, 2), (500, 5), (10**6, 10)])
def test_least_count(rows: int, count: int) -> None:
    assert least_count(rows) == count


def test_dates_become_a_number_and_cyclic_parts() -> None:
    days = np.array([0.0, 31, 59, 90, np.nan]) * 86400
    encoder = DateEncoder.fit(Cells(days))
    features = write(encoder, days)
    names = encoder.feature_names("c")
    assert names[:3] == ["c", "c month sine", "c month cosine"]
    assert "c hour sine" not in names
    assert names[-1] == "c is missing"
    np.testing.assert_allclose(features[:4, 1], np.sin(2 * np.pi * np.arange(4) / 12), atol=1e-6)
    weekday = np.array([3, 6, 6, 2])
    np.testing.assert_allclose(features[:4, 4], np.cos(2 * np.pi * weekday / 7), atol=1e-6)
    np.testing.assert_array_equal(features[4, 1:], [0, 0, 0, 0, 1])


def test_hours_are_cyclic() -> None:
    seconds = np.array([0.0, 6, 12, 18]) * 3600
    features = write(DateEncoder.fit(Cells(seconds)), seconds)
    np.testing.assert_allclose(features[:, 1:], [[0, 1], [1, 0], [0, -1], [-1, 0]], atol=1e-6)


def test_text_is_tf_idf_as_in_scikit_learn() -> None:
    words = ["alpha", "beta", "gamma", "delta", "épée", "x1"]
    texts = [" ".join(RANDOM.choice(words, RANDOM.integers(1, 9))) for _ in range(200)]
    encoder = TextEncoder.fit(Cells(pl.Series(texts)))
    assert sorted(encoder.words) == sorted(words)
    expected = TfidfVectorizer(vocabulary=list(encoder.words)).fit_transform(texts).toarray()
    np.testing.assert_allclose(write(encoder, pl.Series(texts)), expected, atol=1e-6)


def test_text_leaves_out_rare_words_numbers_and_what_all_texts_have() -> None:
    texts = pl.Series(["the big dog 12", "the big cat 12", "the small owl 12", None])
    encoder = TextEncoder.fit(Cells(texts))
    assert encoder.feature_names("c") == ["c~big", "c is missing"]
    np.testing.assert_array_equal(write(encoder, texts), [[1, 0], [1, 0], [0, 0], [0, 1]])
    out = np.zeros((2, 2), dtype=np.float32)
    assert encoder.write(Cells(pl.Series(["unknown words", None])), out) == 1


def test_vectors_are_standardised_by_component() -> None:
    values = RANDOM.normal(size=(50, 3)) * np.array([1.0, 100, 0]) + np.array([0.0, 5, 7])
    values[4] = np.nan
    values[5, 0] = np.nan
    features = write(VectorEncoder.fit(Cells(values)), values)
    assert features.shape == (50, 3)
    expected = StandardScaler().fit_transform(values[:, :2])
    np.testing.assert_allclose(features[:, :2], np.nan_to_num(expected), atol=1e-5)
    assert list(np.flatnonzero(features[:, 2])) == [4]


def test_sparse_vectors_keep_their_zeros() -> None:
    values = np.where(RANDOM.random((50, 4)) < 0.1, 3.0, 0.0)
    values[0] = 3.0
    np.testing.assert_array_equal(write(VectorEncoder.fit(Cells(values)), values), values / 3)
