"""Columns of words (booleans, categories, text): how they are read, and what features they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.cells import Cells, Description, floats, over_distinct, refuse_type, trimmed

BOOLEAN_PAIRS = (
    ("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("0", "1"), ("off", "on"), ("0.0", "1.0"),
    ("nein", "ja"), ("non", "oui"), ("falsch", "wahr"), ("faux", "vrai"),
)  # fmt: skip
"""The two words of a boolean column, in lower case, the one for false first."""


@dataclass(frozen=True)
class BooleanReader:
    """Reads true and false as 1 and 0, in any of the usual spellings."""

    problem: ClassVar[str] = "is neither true nor false"

    def read(self, column: pl.Series) -> Cells[NDArray[np.float64]]:
        """Return 0, 1 or NaN as float64 [rows]."""
        numbers = column.cast(pl.Float64, strict=False) if column.dtype == pl.String else column
        if numbers.null_count() > column.null_count():
            numbers = column
        if numbers.dtype in (pl.Boolean, pl.Null) or numbers.dtype.is_numeric():
            values = floats(numbers)
            good = (values == 0) | (values == 1)
            return Cells(np.where(good, values, np.nan), np.flatnonzero(~good & ~np.isnan(values)))
        if not (column.dtype == pl.String or isinstance(column.dtype, pl.Categorical | pl.Enum)):
            refuse_type(column, "true and false")
        cells = trimmed(column)
        words = [word for pair in BOOLEAN_PAIRS for word in pair]
        meaning = [float(k) for _ in BOOLEAN_PAIRS for k in (0, 1)]

        def parse(text: pl.Series) -> pl.Series:
            return text.str.to_lowercase().replace_strict(
                words, meaning, default=None, return_dtype=pl.Float64
            )

        values = floats(over_distinct(cells, parse))
        return Cells(values, np.flatnonzero(np.isnan(values) & cells.is_not_null().to_numpy()))

    def to_json(self) -> dict[str, Any]:
        """Return nothing: all spellings are known."""
        return {}

    @classmethod
    def from_json(cls, entries: Description) -> BooleanReader:
        """Return the reader that ``to_json`` described."""
        return cls()


@dataclass(frozen=True)
class TextReader:
    """Reads levels of a category, or text; a whole number reads the same from any numeric type."""

    problem: ClassVar[str] = "is not text"

    def read(self, column: pl.Series) -> Cells[pl.Series]:
        """Return trimmed strings, null where missing."""
        dtype = column.dtype
        if dtype.is_float() or isinstance(dtype, pl.Decimal):
            return Cells(_numbers_as_text(column))
        if dtype.is_nested() or dtype in (pl.Object, pl.Binary):
            refuse_type(column, "text")
        return Cells(trimmed(column))

    def to_json(self) -> dict[str, Any]:
        """Return nothing: text is text."""
        return {}

    @classmethod
    def from_json(cls, entries: Description) -> TextReader:
        """Return the reader that ``to_json`` described."""
        return cls()


def _numbers_as_text(column: pl.Series) -> pl.Series:
    """5.0 is '5', as it would be in a column of whole numbers."""
    values = column.cast(pl.Float64).fill_nan(None)
    whole = (values == values.round(0)) & (values.abs() < 2**53)
    text = values.cast(pl.String)
    return text.zip_with(
        ~whole.fill_null(False),
        values.set(~whole.fill_null(False), None).cast(pl.Int64, strict=False).cast(pl.String),
    ).alias(column.name)


@dataclass(frozen=True)
class BooleanEncoder:
    """0 for false, 1 for true; missing values get the share of true in the training rows."""

    share: float
    indicator: bool
    unmarked: ClassVar[str] = "filled with the training share of true"

    @classmethod
    def fit(cls, cells: Cells[NDArray[np.float64]]) -> BooleanEncoder:
        """Learn from training values."""
        values = cells.values[~np.isnan(cells.values)]
        share = float(values.mean()) if values.size else 0.0
        return cls(share, 0 < values.size < cells.values.size)

    @property
    def varies(self) -> bool:
        """Whether both values occur in the training rows."""
        return 0 < self.share < 1

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature."""
        return [column] * self.varies + [f"{column} is missing"] * self.indicator

    def write(self, cells: Cells[NDArray[np.float64]], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]; no value can be unseen."""
        missing = np.isnan(cells.values)
        if self.varies:
            out[:, 0] = np.where(missing, self.share, cells.values)
        if self.indicator:
            out[:, -1] = missing
        return 0

    def describe(self) -> str:
        """Say what became of the booleans."""
        if self.varies:
            return "0 and 1"
        return "all training values are equal, only what is missing is marked" if self.indicator else ""

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {"share": self.share, "indicator": self.indicator}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return nothing: all is in the JSON."""
        return {}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> BooleanEncoder:
        """Return the encoder that ``to_json`` described."""
        share = entries.number("share")
        if not 0 <= share <= 1:
            entries.fail("share")
        return cls(share, entries.flag("indicator"))


MOST_LEVELS = 64
"""Up to this many frequent levels have a feature each."""
FREQUENT_LEVELS, BUCKETS = 32, 32
"""Where there are more, the most frequent have a feature each and all others share hashed ones."""
NONE = np.iinfo(np.int64).min


def least_count(rows: int) -> int:
    """Return in how many training rows a level must occur: 1 % of them, at least 2 and at most 10."""
    return max(2, min(10, rows // 100))


@dataclass(frozen=True)
class CategoryEncoder:
    """One feature of 0 and 1 per level; rare and unseen levels share one, or ``buckets`` hashed ones.

    Missing values are a level of their own if they occur in the training rows. Where no training row has
    a rare level, an unseen one has 0 in all features: no weight was ever trained for it.
    """

    levels: tuple[str, ...]
    other: bool
    buckets: int
    indicator: bool
    rare: int
    unmarked: ClassVar[str] = "0 in all features of the column"

    @classmethod
    def fit(cls, cells: Cells[pl.Series]) -> CategoryEncoder:
        """Learn the levels from training values."""
        filled = cells.values.drop_nulls()
        name = "level"
        counts = filled.alias(name).value_counts().sort(["count", name], descending=[True, False])
        least = least_count(filled.len())
        frequent = counts.filter(pl.col("count") >= least)[name].to_list()
        buckets = BUCKETS if len(frequent) > MOST_LEVELS else 0
        levels = tuple(frequent[:FREQUENT_LEVELS] if buckets else frequent)
        rare = counts.height - len(levels)
        other = rare > 0 and not buckets and bool(levels)
        return cls(levels, other, buckets, bool(cells.missing.any()), rare)

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature; none where the training rows show no difference."""
        names = [f"{column}={level}" for level in self.levels]
        names += [f"{column}=other"] * self.other
        names += [f"{column}#{k}" for k in range(self.buckets)]
        names += [f"{column} is missing"] * self.indicator
        return names if len(names) > 1 or not self.levels else []

    def write(self, cells: Cells[pl.Series], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]; return how many values no training row had as a level of its own."""
        codes = self._codes(cells.values)
        missing = cells.missing
        features = np.where(codes < 0, -1 - codes, codes)
        rows = np.flatnonzero(codes != NONE)
        out[rows, features[rows]] = 1
        if self.indicator:
            out[:, -1] = missing
        return int(((codes < 0) & ~missing).sum())

    def describe(self) -> str:
        """Say what became of the levels."""
        if not self.feature_names(""):
            return ""
        if not self.levels:
            return "no level occurs in enough training rows, only what is missing is marked"
        if self.buckets:
            return (
                f"many levels: one feature for each of the {len(self.levels)} most frequent, "
                f"the other {self.rare} hashed into {self.buckets} features"
            )
        several = f"each of {len(self.levels)} levels" if len(self.levels) > 1 else "the one frequent level"
        parts = [f"one feature for {several}"]
        if self.other:
            parts.append(f"{self.rare} rare and all unseen ones together in one")
        if self.indicator:
            parts.append("missing is a level of its own")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {
            "levels": list(self.levels), "other": self.other, "buckets": self.buckets,
            "indicator": self.indicator, "rare": self.rare,
        }  # fmt: skip

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return nothing: all is in the JSON."""
        return {}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> CategoryEncoder:
        """Return the encoder that ``to_json`` described."""
        return cls(
            entries.texts("levels"), entries.flag("other"), entries.count("buckets"),
            entries.flag("indicator"), entries.count("rare"),
        )  # fmt: skip

    def _codes(self, values: pl.Series) -> NDArray[np.int64]:
        """The feature of each value's level, −1 − feature where it shares that, and NONE without a feature.

        10.0 is the level 10, and 10 the level 10.0: a program that stores whole numbers beside missing cells
        as floating-point numbers writes the same code differently. Buckets are the same on every machine and
        in every version.
        """
        from sklearn.utils import murmurhash3_32  # noqa: PLC0415

        known = len(self.levels)
        codes = {level: k for k, level in enumerate(self.levels)}
        whole = _by_whole_number(self.levels)
        distinct = values.drop_nulls().unique()
        shared = -1 - known if self.other else NONE
        found = []
        for value in distinct.to_list():
            code = codes.get(value, whole.get(_whole_number(value), shared))
            if code < 0 and self.buckets:
                code = -1 - known - murmurhash3_32(value, positive=True) % self.buckets
            found.append(code)
        return values.replace_strict(distinct, found, default=NONE, return_dtype=pl.Int64).to_numpy()


def _whole_number(value: str) -> str:
    """Return the whole number that a value stands for, '10' for '10.0', and the value itself otherwise."""
    whole, _, decimals = value.partition(".")
    is_whole = decimals and not decimals.strip("0") and whole.lstrip("-").isdigit()
    return whole if is_whole else value


def _by_whole_number(levels: tuple[str, ...]) -> dict[str, int]:
    """Return the code of each whole number that exactly one level stands for."""
    numbers = [_whole_number(level) for level in levels]
    return {number: k for k, number in enumerate(numbers) if numbers.count(number) == 1}


MOST_WORDS = 64
SHARE, LEAST, MOST = 0.02, 2, 20
"""A word must occur in this share of the filled training texts, in at least 2 and at most 20 of them."""
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}"
WORD = rf"[{_UNSPACED}]|[\w&&[^{_UNSPACED}]]{{2,}}"
"""A word has two characters, one of them a letter, or more; in scripts without blanks, just one."""


@dataclass(frozen=True)
class TextEncoder:
    r"""TF-IDF as in scikit-learn, on words that occur in several training texts.

    .. math::
        x_{iw} \propto \mathrm{count}_{iw} \left(1 + \log\frac{1 + n}{1 + n_w}\right), \qquad
        \|x_i\|_2 = 1,

    where :math:`n` is the number of filled training texts and :math:`n_w` of those with word :math:`w`.
    """

    words: tuple[str, ...]
    weights: tuple[float, ...]
    indicator: bool
    unmarked: ClassVar[str] = "0 in all features of the column"

    @classmethod
    def fit(cls, cells: Cells[pl.Series]) -> TextEncoder:
        """Learn the words from training texts; words that all of them have say nothing."""
        filled = cells.values.drop_nulls()
        tokens = _tokens(filled).unique()
        counts = tokens.group_by("word").len().sort(["len", "word"], descending=[True, False])
        least = max(LEAST, min(MOST, int(SHARE * filled.len())))
        kept = counts.filter(pl.col("len").is_between(least, filled.len() - 1)).head(MOST_WORDS)
        weights = 1 + np.log((1 + filled.len()) / (1 + kept["len"].to_numpy()))
        missing = 0 < filled.len() < cells.values.len()
        return cls(tuple(kept["word"].to_list()), tuple(weights.tolist()), missing)

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature."""
        return [f"{column}~{word}" for word in self.words] + [f"{column} is missing"] * self.indicator

    def write(self, cells: Cells[pl.Series], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]; return how many texts have none of the words."""
        unknown = 0
        if self.words:
            block = out[:, : len(self.words)]
            codes = pl.DataFrame({"word": self.words, "code": range(len(self.words))})
            found = _tokens(cells.values).join(codes, on="word").group_by("row", "code").len()
            rows, columns = found["row"].to_numpy(), found["code"].to_numpy()
            block[rows, columns] = found["len"].to_numpy() * np.array(self.weights)[columns]
            lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
            unknown = int((lengths == 0).sum() - cells.missing.sum())
            block /= np.where(lengths > 0, lengths, 1)[:, None]
        if self.indicator:
            out[:, -1] = cells.missing
        return unknown

    def describe(self) -> str:
        """Say what became of the text."""
        if not self.words:
            return "no word distinguishes the training rows" if self.indicator else ""
        return f"TF-IDF of {len(self.words)} words"

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {"words": list(self.words), "weights": list(self.weights), "indicator": self.indicator}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return nothing: all is in the JSON."""
        return {}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> TextEncoder:
        """Return the encoder that ``to_json`` described."""
        words, weights = entries.texts("words"), entries.numbers("weights")
        if len(words) != len(weights):
            entries.fail("weights")
        return cls(words, weights, entries.flag("indicator"))


def _tokens(values: pl.Series) -> pl.DataFrame:
    """All words in lower case, each with the row of its text."""
    found = values.str.to_lowercase().str.extract_all(WORD).alias("word")
    frame = pl.DataFrame({"row": pl.arange(values.len(), eager=True), "word": found})
    return frame.explode("word", empty_as_null=True).filter(pl.col("word").str.contains(r"\p{L}"))
