"""Signals on a graph as arrays, checked once."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.spectral.operator import Array


def as_signal(name: str, x: Tensor | ArrayLike, graph: Graph) -> Array:
    """A finite float64 array of shape [N, C]; a signal of one channel may come without its axis."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        raise InputError(f"{name} must be dense, not {x.layout}")
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        values = x.numpy() if x.is_complex() else x.double().numpy()
    else:
        values = np.asarray(x)
    n = check_graph(graph).num_nodes
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers, not {values.dtype}")
    if values.ndim not in (1, 2) or values.shape[0] != n or values.size == 0:
        raise InputError(f"{name} must have shape [{n}] or [{n}, C], not {list(values.shape)}")
    signal: Array = np.ascontiguousarray(values.reshape(n, -1), dtype=np.float64)
    if not np.isfinite(signal).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(signal))[0])
        raise InputError(f"{name}{list(at[: values.ndim])} = {signal[at]} is not finite")
    return signal
