"""Short text to TF-IDF of its most widespread words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.reading.cells import Cells

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
