"""Cut a graph into parts of equal size with few edges between them."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.atomic_file import write_atomic
from plap.checks import check_integer, import_extra
from plap.data.benchmarks.files import user_cache
from plap.data.sampling import check_seed
from plap.errors import InputError
from plap.graph import Graph, check_graph

CacheFolder = str | os.PathLike[str] | bool
_CHUNK = 1 << 22
_DIGEST = 32
"""Bytes of the SHA-256 at the head of a partition's file; each node's part follows, little-endian int32."""


def partition(graph: Graph, parts: int, seed: int = 0, *, cache: CacheFolder = True) -> Tensor:
    """Cut the nodes into ``parts`` by METIS: parts of nearly equal size, few edges between them.

    The same graph, number and seed give the same parts. Edge weights play no role. METIS aims at parts
    at most 3 % larger than the mean, which small parts may not allow; no part is empty.

    Parameters
    ----------
    graph : Graph
    parts : int, from 1 to N
    seed : int
    cache : bool or path
        Where to store results, under a digest of the structure, the number of parts, the seed and METIS's
        version: True is plap's cache in the user's home, False stores nothing. A damaged file is ignored.

    Returns
    -------
    Tensor, int64 [N]
        The part of every node, on the CPU.

    Examples
    --------
    >>> import plap
    >>> two = plap.Graph.from_edges([(0, 2), (2, 4), (4, 0), (1, 3), (3, 5), (5, 1), (0, 1)])
    >>> part = partition(two, 2, cache=False)
    >>> bool(part[0] == part[2] == part[4]), bool(part[1] == part[3] == part[5])
    (True, True)
    """
    nodes = check_graph(graph).num_nodes
    parts, seed = check_integer("parts", parts, 1), check_seed(seed, 2**31 - 1)
    if parts > nodes:
        raise InputError(f"parts is {parts}, but the graph has only {nodes} nodes")
    pymetis = import_extra("pymetis", "scale", "partitioning by METIS")
    indptr, indices = _without_loops(graph)
    folder = _folder(cache)
    if folder is None:
        return torch.from_numpy(_cut(pymetis, indptr, indices, parts, seed).astype(np.int64))
    path = folder / f"{_key(indptr, indices, parts, seed)}.partition"
    part = _read(path, nodes, parts)
    if part is None:
        part = _cut(pymetis, indptr, indices, parts, seed)
        _write(path, part)
    return torch.from_numpy(part.astype(np.int64))


def _folder(cache: CacheFolder) -> Path | None:
    """Where partitions are kept; a folder that the caller named must be one."""
    if isinstance(cache, bool):
        return user_cache() / "partitions" if cache else None
    folder = Path(cache).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cache: {folder} cannot be used as a folder ({error.strerror})") from None
    return folder


def _key(indptr: np.ndarray, indices: np.ndarray, parts: int, seed: int) -> str:
    """SHA-256 of everything that the result depends on."""
    version = importlib.metadata.version("pymetis")
    sha = hashlib.sha256(f"plap.partition/1 pymetis {version} {parts} {seed} {indptr.size} ".encode())
    for array in (indptr, indices):
        for start in range(0, array.size, _CHUNK):
            sha.update(array[start : start + _CHUNK].astype("<i8").tobytes())
    return sha.hexdigest()


def _without_loops(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """CSR arrays of the structure without self-loops, which METIS does not accept."""
    indptr, indices = graph.indptr.cpu().numpy(), graph.indices.cpu().numpy()
    if graph.num_self_loops == 0:
        return indptr, indices
    row = graph.receivers().cpu().numpy()
    other = row != indices
    counts = np.bincount(row[other], minlength=graph.num_nodes)
    return np.concatenate([[0], np.cumsum(counts)]), indices[other]


def _read(path: Path, num_nodes: int, parts: int) -> np.ndarray | None:
    """The parts [N], or None where there is no such file or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload = content[_DIGEST:]
    if len(payload) != 4 * num_nodes or hashlib.sha256(payload).digest() != content[:_DIGEST]:
        return None
    part = np.frombuffer(payload, dtype="<i4")
    return part if part.size and part.min() >= 0 and part.max() < parts else None


def _write(path: Path, part: np.ndarray) -> None:
    """Put the file in place in one step; if the disk refuses, the partition is computed again next time."""
    payload = part.astype("<i4").tobytes()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, hashlib.sha256(payload).digest() + payload)


def _cut(pymetis: Any, indptr: np.ndarray, indices: np.ndarray, parts: int, seed: int) -> np.ndarray:
    dtype = pymetis.zero_copy_dtype()
    if indices.size > np.iinfo(dtype).max:
        raise InputError(f"this build of METIS accepts at most {np.iinfo(dtype).max} stored entries")
    adjacency = pymetis.CSRAdjacency(indptr.astype(dtype, copy=False), indices.astype(dtype, copy=False))
    result = pymetis.part_graph(parts, adjacency, options=pymetis.Options(seed=seed))
    part = np.asarray(result.vertex_part, dtype=np.int32)
    return _fill_empty(part, parts)


def _fill_empty(part: np.ndarray, parts: int) -> np.ndarray:
    """Give each empty part, which METIS leaves where parts have few nodes, one node of a large part."""
    sizes = np.bincount(part, minlength=parts)
    empty = np.flatnonzero(sizes == 0)
    if empty.size == 0:
        return part
    order = np.argsort(part, kind="stable")
    place = np.arange(part.size) - (np.cumsum(sizes) - sizes)[part[order]]  # of a node within its part
    givers = order[np.argsort(-place, kind="stable")[: empty.size]]
    part[givers] = empty
    return part
