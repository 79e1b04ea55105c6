"""The Triton backend as a PyTorch operator."""

from __future__ import annotations

from plap.kernels.row_operator import define
from plap.kernels.row_passes import Kernels
from plap.kernels.triton.layout import padded


def _kernels() -> Kernels:
    from plap.kernels.triton.launcher import KERNELS  # noqa: PLC0415  (Triton is an optional extra)

    return KERNELS


triton_forward, triton_backward = define("triton", _kernels, padded)
