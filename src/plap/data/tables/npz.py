"""A user's own graph from one NPZ file of named arrays. Nothing is ever unpickled."""

from __future__ import annotations

import contextlib
import hashlib
import os
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.data.dataset import FixedSplits, GraphData
from plap.data.labels import encode_labels, is_signs, looks_numeric_target
from plap.data.tables.assembly import assemble
from plap.data.tables.options import TableOptions
from plap.errors import InputError
from plap.graph import Symmetrize
from plap.sparse import csr_tensor

EDGES = ("edges", "edge_index")
WEIGHT = ("weight", "weights", "edge_weight")
FEATURES = ("x", "features", "node_features")
LABELS = ("y", "labels", "label", "node_labels")
IDS = ("ids", "node_ids")
_CSR = ("data", "indices", "indptr", "shape")
_MASKS = tuple(f"{part}_{mask}" for part in ("train", "val", "test") for mask in ("mask", "masks"))
_READ = {*EDGES, *WEIGHT, *LABELS, *IDS, *_MASKS}
_SPARSEST = 1000
"""A file that only has edges and names fewer than one in so many of its nodes is taken for a mistake."""


def load_npz(
    path: str | os.PathLike[str], options: TableOptions | None = None, *, symmetrize: Symmetrize = "max"
) -> GraphData:
    """Load a graph from an NPZ file.

    Parameters
    ----------
    path : path
        Arrays by name, of several names the first that is there:

        =========================================  =====================================================
        ``edges`` [E, 2] or ``edge_index`` [2, E]  node numbers from 0, sources first
        ``weight``, ``weights``, ``edge_weight``   [E], positive; 1 if not given
        ``x``, ``features``, ``node_features``     [N, F]; or CSR parts ``x_data``, ``x_indices``,
                                                   ``x_indptr``, ``x_shape``; structural if not given
        ``y``, ``labels``, ``label``,              [N] integers (-1: unknown), text (empty: unknown) or
        ``node_labels``                            floats (NaN: unknown); fractions are numbers to predict
        ``ids``, ``node_ids``                      [N] distinct integers or text, what nodes are called
        ``train_mask``, ``val_mask``,              [N], or ``train_masks`` [S, N] and so on for S splits:
        ``test_mask``                              true or 1 for the nodes of each set
        =========================================  =====================================================

        Other arrays are not read, and a note names them. N is the length of ``x``, ``y`` or ``ids``, or else
        the largest number + 1.
    options : TableOptions, optional
        Of a mask with several splits, ``index`` is the one that a fit uses by default; ``keep_labels``.
    symmetrize : {"max", "mean", "sum", "error"}
        See :meth:`plap.Graph.from_edge_index`.

    Examples
    --------
    >>> import tempfile
    >>> scratch = tempfile.TemporaryDirectory()
    >>> path = f"{scratch.name}/triangle.npz"
    >>> np.savez(path, edges=[[0, 1], [1, 2], [2, 0]], y=[0, 0, -1])
    >>> load_npz(path).graph
    Graph(3 nodes, 3 edges, unweighted, made undirected)
    """
    file = NpzFile.open(Path(path))
    edge_index = _read_edges(file)
    x = _read_features(file)
    y = file.first(LABELS, ndim=1)
    ids = file.first(IDS, ndim=1)
    n = _count_nodes(file, edge_index, x, y, ids)
    options = options or TableOptions()
    if named := options.naming_columns:
        raise InputError(f"{file.path}: the file has arrays and no columns, so {named} does not apply to it")
    notes: list[str] = []
    labels, class_names = (None, ()) if y is None else _read_labels(file, *y, options, notes)
    unread = [name for name in file.names if name not in _READ and not name.startswith(FEATURES)]
    if unread:
        shown = ", ".join(map(repr, unread[:5])) + (", …" if len(unread) > 5 else "")
        notes.append(f"{file.path.name}: arrays that are not used: {shown}.")
    data = assemble(
        name=file.path.stem,
        source=str(file.path),
        files={file.path.name: hashlib.sha256(file.path.read_bytes()).hexdigest()},
        edge_index=torch.from_numpy(edge_index),
        weight=_read_weight(file, edge_index.shape[1]),
        num_nodes=n,
        x=x,
        y=labels,
        class_names=class_names,
        node_ids=() if ids is None else _read_ids(file, *ids),
        notes=tuple(notes),
        symmetrize=symmetrize,
    )
    masks = _read_masks(file, n)
    return data if masks is None else replace(data, splits=masks)


def _read_edges(file: NpzFile) -> NDArray[np.int64]:
    found = file.first(EDGES, ndim=2)
    if found is None:
        raise InputError(
            f"{file.path}: the file has no array called {' or '.join(EDGES)}, "
            f"only {', '.join(map(repr, file.names)) or 'nothing at all'}"
        )
    name, array = found
    if array.dtype.kind not in "iu" and array.size:
        file.fail(name, f"holds {array.dtype}, and must hold whole numbers")
    if name == "edges":
        array = array.T
    if array.shape[0] != 2:
        wanted = "[E, 2]" if name == "edges" else "[2, E]"
        found_shape = list(array.T.shape if name == "edges" else array.shape)
        file.fail(name, f"must have shape {wanted}, not {found_shape}")
    if array.dtype == np.uint64 and array.max(initial=0) >= 2**63:
        file.fail(name, "holds a node number of 2^63 or more")
    return np.ascontiguousarray(array, dtype=np.int64)


def _read_weight(file: NpzFile, edges: int) -> Tensor | None:
    found = file.first(WEIGHT, ndim=1)
    if found is None:
        return None
    name, array = found
    if array.shape[0] != edges:
        file.fail(name, f"has {array.shape[0]} weights for {edges} edges")
    values = _real(file, name, array)
    if edges and values.min() <= 0:
        row = int(np.argmax(values <= 0))
        file.fail(name, f"{array[row]} is not a positive weight", row)
    return torch.from_numpy(values)


def _read_features(file: NpzFile) -> Tensor | None:
    for name in FEATURES:
        if name in file.names:
            found = file.first((name,), ndim=2)
            assert found is not None
            return torch.from_numpy(_real(file, name, found[1]))
        if f"{name}_data" in file.names:
            return _read_csr(file, name)
    return None


def _read_csr(file: NpzFile, name: str) -> Tensor:
    """Features from the four arrays of a CSR matrix."""
    missing = next((part for part in _CSR if f"{name}_{part}" not in file.names), None)
    if missing is not None:
        raise InputError(f"{file.path}: the array {f'{name}_{missing}'!r} of the sparse features is missing")
    data, indices, indptr, shape = (file.array(f"{name}_{part}") for part in _CSR)
    if any(array.dtype.kind not in "iu" for array in (indices, indptr, shape)) or shape.shape != (2,):
        file.fail(f"{name}_shape", "the indices and the two numbers of the shape must be whole numbers")
    rows, columns = (int(size) for size in shape)
    if (
        indptr.shape != (rows + 1,)
        or indptr[0] != 0
        or indptr[-1] != data.size
        or (np.diff(indptr) < 0).any()
    ):
        file.fail(f"{name}_indptr", f"must ascend from 0 to {data.size} in {rows + 1} steps")
    if data.ndim != 1 or indices.shape != data.shape:
        file.fail(f"{name}_indices", "must be as long as the data")
    if indices.size and (indices.min() < 0 or indices.max() >= columns):
        row = int(np.argmax((indices < 0) | (indices >= columns)))
        file.fail(f"{name}_indices", f"{indices[row]} is no column of {columns}", row)
    matrix = scipy.sparse.csr_array(
        (_real(file, f"{name}_data", data), indices.astype(np.int64), indptr.astype(np.int64)),
        shape=(rows, columns),
    )
    matrix.sum_duplicates()
    return csr_tensor(
        torch.from_numpy(matrix.indptr.astype(np.int64)),
        torch.from_numpy(matrix.indices.astype(np.int64)),
        torch.from_numpy(matrix.data),
        (rows, columns),
    )


def _real(file: NpzFile, name: str, array: Array) -> NDArray[np.float32]:
    """Finite numbers as float32."""
    if array.dtype.kind not in "biuf":
        file.fail(name, f"holds {array.dtype}, and must hold numbers")
    with np.errstate(over="ignore"):
        values: NDArray[np.float32] = array.astype(np.float32)
    if not np.isfinite(values).all():
        at = np.unravel_index(int(np.argmin(np.isfinite(values))), array.shape)
        column = f" in column {at[1]}" if array.ndim == 2 else ""
        file.fail(name, f"{array[at]}{column} is not a finite float32 number", int(at[0]))
    return values


def _read_labels(
    file: NpzFile, name: str, array: Array, options: TableOptions, notes: list[str]
) -> tuple[Tensor, tuple[str, ...]]:
    if options.unknown is not None and array.dtype.kind in "iuf":
        array = array.astype(np.float64)
        with contextlib.suppress(ValueError):  # a word is the mark of no number
            array[array == float(options.unknown)] = np.nan
    if array.dtype.kind in "iuf" and _are_numbers(file, name, array, options, notes):
        return torch.from_numpy(array.astype(np.float64)), ()
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)
    if array.dtype.kind == "f":
        whole = np.where(missing, -1, array)
        if not np.isfinite(whole).all() or (whole != np.floor(whole)).any():
            row = int(np.argmax(~np.isfinite(whole) | (whole != np.floor(whole))))
            file.fail(name, f"{array[row]} is not the name of a class: text or a whole number is", row)
        array = whole.astype(np.int64)
    text = array.astype(np.str_)
    if options.unknown is not None:
        text = np.where(text == str(options.unknown).strip(), "", text)
    elif array.dtype.kind == "i" and is_signs(array[~missing]):
        notes.append(f"{file.path.name}: -1 and 1 in {name!r} are two classes, so -1 is not unknown here.")
    elif array.dtype.kind == "i":
        text = np.where(array < 0, "", text)
    text = np.where(missing, "", text)

    def fail(row: int, problem: str) -> None:
        if options.keep_labels:
            file.fail(name, problem, row)

    y, class_names = encode_labels(text, fail)
    return torch.from_numpy(y), class_names


def _are_numbers(file: NpzFile, name: str, array: Array, options: TableOptions, notes: list[str]) -> bool:
    """Whether labels are to be predicted as numbers; NaN is unknown."""
    if options.task is not None:
        return options.task == "numbers"
    if array.dtype.kind != "f" or not np.isfinite(array[~np.isnan(array)]).all():
        return False
    if not looks_numeric_target(array) or bool((array[~np.isnan(array)] % 1 == 0).all()):
        return False
    notes.append(
        f"{file.path.name}: {name!r} holds {np.unique(array[~np.isnan(array)]).size} different numbers, so a "
        "number is predicted for each node; --task classes takes them for classes."
    )
    return True


def _read_ids(file: NpzFile, name: str, array: Array) -> tuple[str, ...] | tuple[int, ...]:
    if array.dtype.kind not in "iuU":
        file.fail(name, f"holds {array.dtype}, and must hold text or whole numbers")
    values, first = np.unique(array, return_index=True)
    if values.size < array.size:
        row = int(np.setdiff1d(np.arange(array.size), first)[0])
        file.fail(name, f"the id {array[row].item()!r} is there twice", row)
    return tuple(array.tolist())


def _count_nodes(
    file: NpzFile,
    edge_index: NDArray[np.int64],
    x: Tensor | None,
    y: tuple[str, Array] | None,
    ids: tuple[str, Array] | None,
) -> int:
    """N, on which all arrays agree; edges that leave 0..N-1 are refused."""
    sizes = {} if x is None else {"features": x.shape[0]}
    sizes |= {name: array.shape[0] for name, array in (pair for pair in (y, ids) if pair is not None)}
    if len(set(sizes.values())) > 1:
        said = " and ".join(f"{name!r} has {size} rows" for name, size in sizes.items())
        raise InputError(f"{file.path}: the arrays do not agree, {said}")
    largest = int(edge_index.max(initial=-1))
    n = next(iter(sizes.values()), largest + 1)
    name = file.find(EDGES) or EDGES[0]
    if edge_index.size and (edge_index.min() < 0 or largest >= n):
        row = int(np.argmax(((edge_index < 0) | (edge_index >= n)).any(axis=0)))
        source, target = edge_index[:, row].tolist()
        file.fail(name, f"edge {source} → {target} leaves the {n} nodes", row)
    if n == 0:
        raise InputError(f"{file.path}: the graph has no nodes")
    if not sizes and n > _SPARSEST * (2 * edge_index.shape[1] + _SPARSEST):
        file.fail(name, f"node {largest} in only {edge_index.shape[1]} edges: number the nodes from 0")
    return n


def _read_masks(file: NpzFile, nodes: int) -> FixedSplits | None:
    """The splits of a file, one column each; None where it has none."""
    masks: dict[str, Tensor] = {}
    for part in ("train", "val", "test"):
        name = file.find((f"{part}_mask", f"{part}_masks"))
        if name is None:
            continue
        array = file.array(name)
        if array.ndim == 2 and array.shape[0] != nodes:
            array = array.T
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[0] != nodes:
            file.fail(name, f"must have one entry per node and split, not shape {list(array.shape)}")
        if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
            file.fail(name, "must hold true and false, or 1 and 0")
        masks[part] = torch.from_numpy(array.astype(np.bool_))
    if not masks:
        return None
    missing = next((part for part in ("train", "val", "test") if part not in masks), None)
    if missing is not None:
        raise InputError(f"{file.path}: there is no array '{missing}_mask', and other masks are there")
    if len({mask.shape for mask in masks.values()}) > 1:
        raise InputError(f"{file.path}: the masks hold different numbers of splits")
    return FixedSplits(masks["train"], masks["val"], masks["test"], preferred=True)


Array = NDArray[Any]


@dataclass(frozen=True)
class NpzFile:
    """The names of its arrays; each is read when it is asked for."""

    path: Path
    names: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> NpzFile:
        """Check that the file is there and an archive of arrays."""
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        if not path.is_file() or not os.access(path, os.R_OK):
            raise InputError(f"{path}: this is not a file that can be read")
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty")
        if not zipfile.is_zipfile(path):
            raise InputError(f"{path}: not a whole NPZ file")
        try:
            with np.load(path, allow_pickle=False) as archive:
                return cls(path, tuple(archive.files))
        except (ValueError, OSError, EOFError, zipfile.BadZipFile):
            raise InputError(f"{path}: not a whole NPZ file") from None

    def find(self, names: tuple[str, ...]) -> str | None:
        """Return the first of ``names`` that is there."""
        return next((name for name in names if name in self.names), None)

    def first(self, names: tuple[str, ...], ndim: int) -> tuple[str, Array] | None:
        """Name and array of the first of ``names`` that is there, of ``ndim`` dimensions."""
        name = self.find(names)
        if name is None:
            return None
        array = self.array(name)
        if array.ndim != ndim:
            self.fail(name, f"must have {ndim} dimension{'s' if ndim > 1 else ''}, not {array.ndim}")
        return name, array

    def array(self, name: str) -> Array:
        """Read one array."""
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                array: Array | bytes = archive[name]
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError):
            self.fail(name, "the data is truncated or damaged")
        except (ValueError, SyntaxError, TypeError, MemoryError):
            if self._holds_objects(name):
                self.fail(name, "holds Python objects, which are never loaded")
            self.fail(name, "is not a NumPy array")
        if isinstance(array, bytes):
            self.fail(name, "is not a NumPy array")
        if array.dtype.kind not in "biufU":
            self.fail(name, f"holds {array.dtype}, and must hold numbers or text")
        return array

    def _holds_objects(self, name: str) -> bool:
        """Whether the header of an array says that its entries are pickled."""
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{name}.npy") as stream:
            try:
                first = np.lib.format.read_magic(stream) == (1, 0)
                read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
                return bool(read(stream)[2].hasobject)
            except (ValueError, SyntaxError, TypeError):
                return False

    def fail(self, name: str, problem: str, row: int | None = None) -> NoReturn:
        """Raise an ``InputError`` that names the file, the array and the row."""
        where = f"array {name!r}" + ("" if row is None else f", row {row}")
        raise InputError(f"{self.path}, {where}: {problem}")
