"""From raw files to tensors, one function per format."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.data.benchmarks.benchmark import Benchmark, RawGraph
from plap.data.dataset import FixedSplits
from plap.sparse import compact


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
