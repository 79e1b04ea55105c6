"""A table with a column of every kind, as text and typed."""

from __future__ import annotations

import numpy as np
import polars as pl

KINDS = ("age", "income", "member", "country", "town", "since", "comment", "vector")


def typed_table(rows: int = 200, seed: int = 0, missing: float = 0.1) -> pl.DataFrame:
    """Numbers, booleans, categories with few and many levels, dates, text and vectors, with missing cells."""
    random = np.random.default_rng(seed)
    words = np.array(["late", "early", "pays", "asks", "never", "likes", "colour"])
    frame = pl.DataFrame(
        {
            "age": random.integers(18, 90, rows),
            "income": np.exp(random.normal(10, 1, rows)).round(2),
            "member": random.random(rows) < 0.4,
            "country": random.choice(["DE", "FR", "US"], rows),
            "town": [f"town{k}" for k in (300 * random.random(rows) ** 2).astype(int)],
            "since": np.datetime64("2015-01-01") + random.integers(0, 3000, rows),
            "comment": [" ".join(random.choice(words, 4)) for _ in range(rows)],
        }
    )
    gaps = [
        pl.when(pl.Series(random.random(rows) >= missing)).then(pl.col(name)).alias(name)
        for name in frame.columns
    ]
    return frame.select(gaps).with_columns(vector=pl.Series(list(random.normal(size=(rows, 3)))))


def text_table(rows: int = 200, seed: int = 0, missing: float = 0.1) -> pl.DataFrame:
    """The same table as a CSV reader gives it that infers no types."""
    frame = typed_table(rows, seed, missing)
    vectors = [f"[{', '.join(map(str, vector))}]" for vector in frame["vector"].to_list()]
    return frame.with_columns(pl.all().exclude("vector").cast(pl.String), vector=pl.Series(vectors))
