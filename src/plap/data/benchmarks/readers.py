"""From raw files to tensors, one function per format."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.data.benchmarks.benchmark import Benchmark, RawGraph
from plap.data.dataset import FixedSplits, largest_component_nodes
from plap.graph import Graph
from plap.sparse import compact, csr_tensor


def read_pyg(benchmark: Benchmark, folder: Path) -> RawGraph:
    """Let PyG's dataset class read ``folder`` (a scratch folder: PyG writes ``processed/`` into it)."""
    from torch_geometric import datasets  # noqa: PLC0415

    arguments = {} if benchmark.pyg_name is None else {"name": benchmark.pyg_name}
    with contextlib.redirect_stderr(io.StringIO()):
        dataset = getattr(datasets, benchmark.pyg_class)(
            root=str(folder), pre_transform=_compact_features, **arguments
        )
    data = dataset[0]
    splits = None
    if "train_mask" in data:
        masks = (data.train_mask, data.val_mask, data.test_mask)
        splits = FixedSplits(*(mask.bool().reshape(mask.shape[0], -1) for mask in masks))
    return RawGraph(data.edge_index, data.x, data.y.long(), splits)


def _compact_features(data: Any) -> Any:
    """Shrink the features before PyG writes and reads them back: Coauthor Physics takes 1.2 GB dense."""
    data.x = compact(data.x)
    return data


def read_filtered(benchmark: Benchmark, folder: Path) -> RawGraph:
    """Read the duplicate-filtered Wikipedia graphs, whose ``.npz`` PyG's class knows no name for."""
    stem = benchmark.pyg_name
    with np.load(folder / f"{stem}.npz") as arrays:
        edges = torch.from_numpy(arrays["edges"]).long().T
        masks = [
            torch.from_numpy(arrays[f"{name}_masks"]).bool().T.contiguous()
            for name in ("train", "val", "test")
        ]
        return RawGraph(
            torch.cat([edges, edges.flip(0)], dim=1),
            torch.from_numpy(arrays["node_features"]),
            torch.from_numpy(arrays["node_labels"]).long(),
            FixedSplits(*masks),
        )


def read_ppi(benchmark: Benchmark, folder: Path) -> RawGraph:
    """Read PPI's 24 graphs as one disjoint union.

    PyG's own class is not used: it shifts the edges of a graph whose first node has none.
    """
    parts = [_ppi_part(folder / "raw", name) for name in ("train", "valid", "test")]
    sizes = [x.shape[0] for _, x, _, _ in parts]
    offsets = np.cumsum([0, *sizes[:-1]])
    first_graph = np.cumsum([0] + [int(graph.max()) + 1 for *_, graph in parts[:-1]])
    part_of_node = torch.repeat_interleave(torch.arange(3), torch.tensor(sizes))
    edges = torch.cat([part[0] + int(offset) for part, offset in zip(parts, offsets, strict=True)], dim=1)
    graphs = torch.cat([part[3] + int(first) for part, first in zip(parts, first_graph, strict=True)])
    return RawGraph(
        torch.cat([edges, edges.flip(0)], dim=1),
        torch.cat([part[1] for part in parts]),
        torch.cat([part[2] for part in parts]),
        FixedSplits(*((part_of_node == k).unsqueeze(1) for k in range(3))),
        graphs,
    )


def _ppi_part(folder: Path, name: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Edges [2, E], features, labels and number of the graph of each node (from 0) of one part."""
    with (folder / f"{name}_graph.json").open(encoding="utf-8") as stream:
        links = json.load(stream)["links"]
    edges = np.array([(link["source"], link["target"]) for link in links], dtype=np.int64).reshape(-1, 2)
    x, y, graph = (np.load(folder / f"{name}_{kind}.npy") for kind in ("feats", "labels", "graph_id"))
    return (
        torch.from_numpy(edges.T.copy()),
        torch.from_numpy(x).float(),
        torch.from_numpy(y).float(),
        torch.from_numpy(graph).long() - int(graph.min()),
    )


def read_ogb(benchmark: Benchmark, folder: Path) -> RawGraph:
    """Read OGB's own ``csv.gz`` files: OGB's package would unpickle a processed copy."""
    edges = _csv(folder / "raw" / "edge.csv.gz").astype(np.int64)
    x = _csv(folder / "raw" / "node-feat.csv.gz").astype(np.float32)
    y = _csv(folder / "raw" / "node-label.csv.gz").astype(np.int64)
    masks = []
    for name in ("train", "valid", "test"):
        mask = torch.zeros(len(y), 1, dtype=torch.bool)
        mask[
            torch.from_numpy(_csv(folder / "split" / "time" / f"{name}.csv.gz").astype(np.int64)).flatten()
        ] = True
        masks.append(mask)
    return RawGraph(
        torch.from_numpy(edges.T.copy()),
        torch.from_numpy(x),
        torch.from_numpy(y).flatten(),
        FixedSplits(*masks),
    )


def _csv(path: Path) -> np.ndarray:
    import polars  # noqa: PLC0415

    return polars.read_csv(path, has_header=False, infer_schema_length=None).to_numpy()


def read_attacked(
    benchmark: Benchmark, folder: Path, *, stem: str, matrix: str | None = None, targets: str | None = None
) -> RawGraph:
    """Read the clean graph's features and labels, and the edges that the attacker left.

    Matrices and splits count the nodes of the largest component of the clean graph, in its own order. The
    arrays of objects in the files are never touched, so nothing is unpickled.

    Parameters
    ----------
    stem : str
        What the names of the files begin with.
    matrix : str, optional
        File of the attacked adjacency matrix; by default the clean graph.
    targets : str, optional
        File of the nodes that were attacked: of the published test nodes only these are kept.
    """
    with np.load(folder / f"{stem}.npz", allow_pickle=False) as arrays:
        adjacency, x = _matrix(arrays, "adj"), _matrix(arrays, "attr")
        y = torch.from_numpy(arrays["labels"].astype(np.int64))
    nodes = largest_component_nodes(Graph.from_scipy(adjacency, symmetrize="max", self_loops="drop")).numpy()
    edges = adjacency[nodes][:, nodes] if matrix is None else scipy.sparse.load_npz(folder / matrix)
    if edges.shape != (nodes.size, nodes.size):
        raise ValueError(f"{matrix} has {edges.shape[0]} nodes and the clean graph {nodes.size}")
    x = scipy.sparse.csr_array(x[nodes]).astype(np.float32)
    return RawGraph(
        _edge_index(edges),
        csr_tensor(
            torch.from_numpy(x.indptr), torch.from_numpy(x.indices), torch.from_numpy(x.data), x.shape
        ),
        y[torch.from_numpy(nodes)],
        _splits(folder, stem, targets, nodes.size),
    )


def _matrix(arrays: Any, name: str) -> scipy.sparse.csr_array:
    parts = [arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr", "shape")]
    return scipy.sparse.csr_array(tuple(parts[:3]), shape=tuple(int(size) for size in parts[3]))


def _edge_index(adjacency: Any) -> Tensor:
    """Both directions of every edge: the attacker changes edges of an undirected graph."""
    entries = scipy.sparse.coo_array(adjacency)
    kept = (entries.data != 0) & (entries.row != entries.col)
    ends = torch.from_numpy(np.stack([entries.row[kept], entries.col[kept]]).astype(np.int64))
    both: Tensor = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    return both


def _splits(folder: Path, stem: str, targets: str | None, nodes: int) -> FixedSplits:
    with (folder / f"{stem}_prognn_splits.json").open(encoding="utf-8") as stream:
        parts = json.load(stream)
    train, val, test = (_mask(parts[f"idx_{name}"], nodes) for name in ("train", "val", "test"))
    if targets is not None:
        with (folder / targets).open(encoding="utf-8") as stream:
            test = _mask(json.load(stream)["attacked_test_nodes"], nodes) & ~train & ~val
    return FixedSplits(train, val, test, preferred=True)


def _mask(index: list[int], nodes: int) -> Tensor:
    mask = torch.zeros(nodes, 1, dtype=torch.bool)
    mask[torch.tensor(index, dtype=torch.int64)] = True
    return mask
