"""`plap bench tables`: everything around training on a million rows, and reading a hundred million edges."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet
import torch
from numpy.typing import NDArray

NODES, EDGES = 1_000_000, 5_000_000
NAMES, NAMED_EDGES = 2_000_000, 100_000_000
_CHUNK = 10_000_000
_CITIES = np.array([f"city {k}" for k in range(30)])
_WORDS = np.array(["late", "paid", "wrote", "again", "moved", "called", "twice", "never"])


def run(share: float = 1.0, named_share: float = 0.0) -> dict[str, Any]:
    """Seconds per phase and peak memory; ``named_share`` of the hundred million edges is read as well."""
    result: dict[str, Any] = {"torch": torch.__version__, "threads": torch.get_num_threads()}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_customers(folder, int(share * NODES), int(share * EDGES))
        found = _in_new_process("fit", folder)
        result |= {"phases": found.pop("phases"), "fit": found}
    if named_share:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            write_named_edges(folder, int(named_share * NAMES), int(named_share * NAMED_EDGES))
            result["reading"] = [_in_new_process(kind, folder) for kind in ("with nodes", "edges alone")]
    return result


def write_customers(folder: Path, nodes: int, edges: int) -> None:
    """Two classes; 16 columns of numbers, categories, dates and text with missing cells; text ids."""
    rng = np.random.default_rng(0)
    kind = rng.random(nodes) < 0.3
    gap = rng.random((4, nodes)) < 0.05

    def holed(values: NDArray[Any], where: NDArray[np.bool_]) -> pl.Series:
        return pl.Series(values).set(pl.Series(where), None)

    days = rng.integers(0, 3000, (2, nodes)).astype("timedelta64[D]") + np.datetime64("2015-01-01")
    columns: dict[str, Any] = {
        "id": np.char.add("c", np.arange(nodes).astype(np.str_)),
        "label": np.where(rng.random(nodes) < 0.5, np.where(kind, "business", "private"), ""),
        "age": holed(rng.normal(np.where(kind, 47, 38), 11).round(), gap[0]),
        "income": holed(np.exp(rng.normal(np.where(kind, 11.0, 10.4), 0.8)), gap[1]),
        "country": holed(rng.choice(["DE", "FR", "US", "IT", "PL"], nodes), gap[2]),
        "city": _CITIES[rng.integers(_CITIES.size, size=nodes)],
        "signup": days[0].astype("datetime64[us]"),
        "last_order": holed(days[1].astype("datetime64[us]"), gap[3]),
        "newsletter": rng.random(nodes) < 0.4,
        "comment": pl.Series(_WORDS[rng.integers(_WORDS.size, size=nodes)])
        + " " + pl.Series(_WORDS[rng.integers(_WORDS.size, size=nodes)]),
        **{f"amount_{k}": np.exp(rng.normal(k / 4, 1.0, nodes)) for k in range(4)},
        **{f"score_{k}": rng.normal(0.3 * kind, 1.0) for k in range(4)},
    }  # fmt: skip
    pl.DataFrame(columns).write_parquet(folder / "nodes.parquet")
    first = rng.integers(nodes, size=edges)
    other = rng.integers(nodes, size=edges)
    near = np.where(kind[first] == kind[other], other, rng.integers(nodes, size=edges))
    ends = {"source": first, "target": near}
    frame = pl.DataFrame({name: "c" + pl.Series(end).cast(pl.String) for name, end in ends.items()})
    frame.write_parquet(folder / "edges.parquet")


def write_named_edges(folder: Path, names: int, edges: int) -> None:
    """Edges between nodes that are called by text, in row groups that are written one after another."""
    rng = np.random.default_rng(0)
    called = ("user" + pl.arange(names, eager=True).cast(pl.String)).alias("id")
    called.to_frame().write_parquet(folder / "nodes.parquet")
    writer = None
    for start in range(0, edges, _CHUNK):
        size = min(_CHUNK, edges - start)
        ends = {name: called.gather(rng.integers(names, size=size)) for name in ("source", "target")}
        table = pl.DataFrame(ends).to_arrow()
        writer = writer or pyarrow.parquet.ParquetWriter(folder / "edges.parquet", table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _in_new_process(kind: str, folder: Path) -> dict[str, Any]:
    """Memory is that of a process, so every measurement has one of its own."""
    command = [sys.executable, str(Path(__file__).parent / "tables_probe.py"), kind, str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    print(json.dumps(run(share=0.02, named_share=0.002), indent=1))
