"""The fused backend as a PyTorch operator."""

from __future__ import annotations

from plap.kernels.fused.layout import padded
from plap.kernels.row_operator import define
from plap.kernels.row_passes import Kernels


def _kernels() -> Kernels:
    from plap.kernels.fused.launcher import KERNELS  # noqa: PLC0415  (Numba takes a second to import)

    return KERNELS


fused_forward, fused_backward = define("fused", _kernels, padded)
