"""Draw the paper's pictures for the documentation from the numbers beside this file.

``plap reproduce training-curves``, ``entropy`` and ``embeddings`` compute these numbers and draw one picture
each; here, those with many panels are cut into several.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plap.reporting.figures import find_figure
from plap.reporting.figures.figure import HETEROPHILIC, HOMOPHILIC
from plap.reporting.picture import encode

HERE = Path(__file__).parent
PICTURES = {
    "training-curves": ("training-curves", (*HOMOPHILIC, *HETEROPHILIC)),
    "entropy-homophilic": ("entropy", HOMOPHILIC),
    "entropy-heterophilic": ("entropy", HETEROPHILIC),
    "embeddings-homophilic": ("embeddings", HOMOPHILIC),
    "embeddings-heterophilic": ("embeddings", HETEROPHILIC),
}
"""By the name of the file: which picture of the paper, and of which datasets."""


def drawn(name: str) -> bytes:
    """One of the pictures, PNG."""
    figure, datasets = PICTURES[name]
    table = pl.read_parquet(HERE / f"{figure}.parquet").filter(pl.col("dataset").is_in(datasets))
    return encode(find_figure(figure).draw(table), "png")


if __name__ == "__main__":
    for name in PICTURES:
        (HERE / f"{name}.png").write_bytes(drawn(name))
        print(f"docs/figures/{name}.png")
