"""``plap.data.load``: a benchmark or a cSBM by name."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from zipfile import BadZipFile

from plap.data.benchmarks.benchmark import Benchmark, RawGraph
from plap.data.benchmarks.files import locate, stage
from plap.data.benchmarks.registry import find
from plap.data.dataset import DatasetName, GraphData, Provenance
from plap.data.dataset import largest_component as keep_largest_component
from plap.data.synthetic import csbm_of
from plap.errors import InputError
from plap.graph import Graph
from plap.sparse import compact

_UNREADABLE = (
    ArithmeticError,
    BadZipFile,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


def load(
    name: str, root: str | os.PathLike[str] | None = None, *, largest_component: bool = False
) -> GraphData:
    """Load a benchmark by its name, or make a cSBM from a string such as ``csbm:phi=-0.5,n=1000``.

    Raw files are looked for in ``root``, ``$PLAP_DATA`` and the user's cache, in this order, in the
    layout of PyG's dataset classes (``plap data list`` shows what is here). Files whose SHA-256 is known
    are verified before anything is unpickled, and no data folder is written to: PyG works in a scratch
    copy. Only when neither ``root`` nor ``$PLAP_DATA`` is given are missing files fetched, into the cache.

    Parameters
    ----------
    name : str
        ``cora``, ``citeseer``, ``pubmed``, ``computers``, ``photo``, ``cs``, ``physics``, ``chameleon``,
        ``squirrel``, ``actor``, ``wisconsin``, ``texas``, ``cornell`` (corrected in July 2022),
        ``cornell-2021`` (with Texas' features and labels, as the paper had it), ``roman-empire``,
        ``amazon-ratings``, ``minesweeper``, ``tolokers``, ``questions``, ``chameleon-filtered``,
        ``squirrel-filtered``, ``ppi``, ``ogbn-arxiv``, or ``csbm:phi=...``; upper or lower case. Graphs
        that were attacked before training: ``cora-metattack:rate=0.25`` (the share of changed edges, 0 to
        0.25 in steps of 0.05) and ``cora-nettack:rate=3`` (changes per target, 0 to 5), and the same of
        ``citeseer`` and ``pubmed``; they are meant for their public split.
    root : path, optional
        The data folder to look in first.
    largest_component : bool
        Keep only the largest connected component: the paper's Computers and Photo.

    Returns
    -------
    GraphData
        An undirected graph without self-loops; ``directed_edge_index`` holds the source's own edges where
        these differ. Features are float32 as published, not row-normalised, and sparse CSR where that is
        smaller. ``ppi`` is the disjoint union of its 24 graphs: ``graph_of_node`` numbers them, and
        ``splits`` says which nodes are for training, so an inductive run trains on the subgraph of
        ``splits.train[:, 0]``; no edge leaves it.

    Examples
    --------
    >>> import plap.data
    >>> plap.data.load("csbm:phi=0.5,n=100,f=8").x.shape
    torch.Size([100, 8])
    """
    if not isinstance(name, str):
        raise InputError(f"the name of a benchmark must be a string, not {name!r}")
    asked = DatasetName.parse(name)
    if asked.is_csbm:
        data = csbm_of(asked)
        return keep_largest_component(data) if largest_component else data
    benchmark = find(name)
    if benchmark.rates and not asked.parameters:
        raise InputError(
            f"{benchmark.name} needs the rate of its attack, for example "
            f"{benchmark.name}:rate={max(benchmark.rates):g}"
        )
    return load_benchmark(benchmark, root, largest_component=largest_component)


def load_benchmark(
    benchmark: Benchmark, root: str | os.PathLike[str] | None = None, *, largest_component: bool = False
) -> GraphData:
    """Load a row of the registry, or one of the caller's own making; see :func:`load`."""
    folder = locate(benchmark, root)
    with tempfile.TemporaryDirectory(prefix="plap-") as scratch:
        sums = stage(benchmark, folder, Path(scratch))
        try:
            raw = benchmark.reader(benchmark, Path(scratch) / benchmark.folder)
            data = _assemble(benchmark, raw, sums)
        except _UNREADABLE as error:
            if all(file.sha256 for file in benchmark.files):
                raise  # The files are the published ones: the fault is not the user's.
            where = folder / Path(benchmark.files[0].path).parent
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"{benchmark.name}: the files in {where} cannot be read ({reason})") from error
    _check_statistics(benchmark, data, folder)
    return keep_largest_component(data) if largest_component else data


def _assemble(benchmark: Benchmark, raw: RawGraph, sums: dict[str, str]) -> GraphData:
    graph = Graph.from_edge_index(
        raw.edge_index, num_nodes=raw.y.shape[0], symmetrize="max", self_loops="drop"
    )
    info = graph.info
    return GraphData(
        name=benchmark.name,
        graph=graph,
        x=compact(raw.x),
        y=raw.y,
        splits=raw.splits,
        directed_edge_index=raw.edge_index if info.self_loops or info.one_way else None,
        graph_of_node=raw.graph_of_node,
        provenance=Provenance(benchmark.source, sums, benchmark.notes),
    )


def _check_statistics(benchmark: Benchmark, data: GraphData, folder: Path) -> None:
    """Refuse files that are not the published set: all there is to go by where no sum is known."""
    published = benchmark.statistics
    if published is None:
        return
    found = {
        "nodes": data.graph.num_nodes,
        "edges": data.graph.num_edges,
        "features": data.x.shape[1],
        "classes": data.num_classes,
    }
    for what, count in found.items():
        if count != getattr(published, what):
            raise InputError(
                f"{folder / benchmark.files[0].path} is not the published {benchmark.name}: "
                f"{count} {what}, not {getattr(published, what)}"
            )
