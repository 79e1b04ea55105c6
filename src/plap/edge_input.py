"""Edges and weights as users give them: checked, and named by position where they are wrong."""

from __future__ import annotations

from typing import get_args

import numpy as np
import torch
from torch import Tensor

from plap.coalesce import MAX_NODES
from plap.errors import InputError


def weight_tensor(values: np.ndarray) -> Tensor:
    """A tensor of what NumPy calls real numbers; integers as float32."""
    if values.dtype.kind not in "biuf":
        raise InputError(f"weight must hold real numbers, not {values.dtype}")
    dtype = np.float64 if values.dtype.kind == "f" and values.dtype.itemsize >= 8 else np.float32
    return torch.from_numpy(np.ascontiguousarray(values, dtype=dtype))


def edge_attribute(source: object, target: object, value: object) -> float:
    """Weight of one NetworkX edge."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        edge = (source, target)
        raise InputError(f"weight must be a number on every edge, not {value!r} on {edge}") from None


def check_choice(name: str, value: str, choices: object) -> None:
    """Refuse what is not one of the values of a ``Literal``."""
    if value not in get_args(choices):
        raise InputError(f"{name} must be one of {', '.join(get_args(choices))}, not {value!r}")


def endpoints(edge_index: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Sources and targets as NumPy arrays, checked for shape and type."""
    if not isinstance(edge_index, Tensor):
        raise InputError(f"edge_index must be a tensor, not {type(edge_index).__name__}")
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise InputError(f"edge_index must have shape [2, E], not {list(edge_index.shape)}")
    if edge_index.dtype.is_floating_point or edge_index.dtype.is_complex or edge_index.dtype == torch.bool:
        raise InputError(f"edge_index must hold integer node indices, not {edge_index.dtype}")
    array = edge_index.detach().as_subclass(Tensor).cpu().numpy()
    if array.dtype == np.uint64:
        array = array.astype(np.int64)  # what overflows is negative then, and refused as such
    return array[0], array[1]


def count_nodes(source: np.ndarray, target: np.ndarray, num_nodes: int | None) -> int:
    """N, after checking that every index is in [0, N)."""
    for row, index in enumerate((source, target)):
        if index.size and index.min() < 0:
            at = int(np.argmax(index < 0))
            raise InputError(f"edge_index[{row}, {at}] = {index[at]} is negative")
    largest = max((int(index.max()) for index in (source, target) if index.size), default=-1)
    if largest >= MAX_NODES:
        row = int(source.max() < MAX_NODES)
        index = (source, target)[row]
        at = int(np.argmax(index >= MAX_NODES))
        raise InputError(
            f"edge_index[{row}, {at}] = {index[at]} is too large: nodes are numbered from 0 to 2^31 - 1"
        )
    if num_nodes is None:
        return largest + 1
    if isinstance(num_nodes, bool) or not isinstance(num_nodes, int | np.integer) or num_nodes < 0:
        raise InputError(f"num_nodes must be an integer of 0 or more, not {num_nodes!r}")
    if largest >= num_nodes:
        for row, index in enumerate((source, target)):
            if index.size and index.max() >= num_nodes:
                at = int(np.argmax(index >= num_nodes))
                raise InputError(
                    f"edge_index[{row}, {at}] = {index[at]} is out of range: num_nodes is {num_nodes}"
                )
    if num_nodes > MAX_NODES:
        raise InputError(f"num_nodes = {num_nodes} is too large: a graph has at most 2^31 nodes")
    return int(num_nodes)


def checked_weights(edge_weight: Tensor | None, count: int) -> Tensor | None:
    """Weights on the CPU, checked."""
    if edge_weight is None:
        return None
    if not isinstance(edge_weight, Tensor):
        raise InputError(f"edge_weight must be a tensor, not {type(edge_weight).__name__}")
    if edge_weight.shape == (count, 1):
        edge_weight = edge_weight.squeeze(1)
    if edge_weight.shape != (count,):
        raise InputError(f"edge_weight must have shape [{count}], not {list(edge_weight.shape)}")
    if edge_weight.dtype.is_complex:
        raise InputError(f"edge_weight must be real, not {edge_weight.dtype}")
    weight = edge_weight.cpu()
    if weight.dtype not in (torch.float32, torch.float64):
        weight = weight.float()
    bad = ~(torch.isfinite(weight) & (weight > 0))
    if bool(bad.any()):
        at = int(bad.int().argmax())
        raise InputError(f"edge_weight[{at}] = {float(weight[at])} is not a positive finite number")
    return weight
