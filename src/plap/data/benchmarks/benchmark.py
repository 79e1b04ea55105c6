"""What a benchmark is: its files, the function that reads them, and what was published of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from plap.data.dataset import FixedSplits


@dataclass(frozen=True)
class RawGraph:
    """What a reader returns."""

    edge_index: Tensor
    """int64 [2, E], as the source has them: directed, with self-loops."""
    x: Tensor
    """[N, F], dense or sparse CSR."""
    y: Tensor
    """int64 [N], -1 where unknown; or float32 [N, L] of 0 and 1, a row of NaN where unknown."""
    splits: FixedSplits | None = None
    graph_of_node: Tensor | None = None


@dataclass(frozen=True)
class RawFile:
    """One raw file of a benchmark."""

    path: str
    """Where it lies under the data folder, with forward slashes."""
    sha256: str | None = None
    """The sum of the published file; None where plap does not know it."""
    url: str | None = None
    """Where the file itself can be fetched; None if it only comes inside an archive."""


@dataclass(frozen=True)
class Statistics:
    """Published size of a benchmark: undirected edges without self-loops."""

    nodes: int
    edges: int
    features: int
    classes: int


@dataclass(frozen=True)
class Benchmark:
    """A row of the registry."""

    name: str
    label: str
    """What a reader calls it."""
    files: tuple[RawFile, ...]
    statistics: Statistics | None
    source: str
    """The public project that the files come from."""
    reader: Callable[[Benchmark, Path], RawGraph]
    """Reads the files under ``folder``."""
    variant: str = ""
    """What sets it apart from another benchmark with the same label."""
    folder: str = ""
    """The folder under the data folder that ``reader`` is pointed at."""
    pyg_class: str = ""
    pyg_name: str | None = None
    """The ``name`` argument of the PyG class; None if it takes none."""
    pickled: bool = False
    """Whether reading runs a pickle: then a file without a known sum is refused."""
    archive: str | None = None
    """Where the files come from if they only come inside an archive."""
    notes: tuple[str, ...] = field(default=())
    rates: Mapping[float, Benchmark] = field(default_factory=dict)
    """Of a graph under attack: the benchmark at each rate, which a name asks for by ``:rate=``."""
