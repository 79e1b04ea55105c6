"""Sizes of the blocks that a program works on."""

from __future__ import annotations

from typing import NamedTuple

import torch

_WIDEST = 512
"""Channels of a block at most; a row with more of them has several blocks."""

_PER_LANE = 8
"""Numbers of float32 per lane of a warp in a block of entries × channels."""

_NODE_BLOCK = 1024
"""Numbers of float32 in a block of nodes × channels."""


class Layout(NamedTuple):
    """How a row of channels is cut."""

    BLOCK_C: int
    """Channels per block, a power of two."""
    BLOCKS: int
    BLOCK_E: int
    """Entries that are taken at a time."""
    warps: int


def layout(channels: int, dtype: torch.dtype) -> Layout:
    """A warp per 128 channels, which takes as many entries at a time as its registers hold.

    Examples
    --------
    >>> layout(16, torch.float32), layout(100, torch.float64)
    (Layout(BLOCK_C=16, BLOCKS=1, BLOCK_E=16, warps=1), Layout(BLOCK_C=128, BLOCKS=1, BLOCK_E=1, warps=1))
    >>> layout(1000, torch.float32)
    Layout(BLOCK_C=512, BLOCKS=2, BLOCK_E=2, warps=4)
    """
    block = min(_WIDEST, max(4, 1 << (channels - 1).bit_length()))
    warps = max(1, block // 128)
    numbers = 32 * warps * _PER_LANE * 4 // dtype.itemsize
    return Layout(block, -(-channels // block), max(1, min(32, numbers // block)), warps)


def node_blocks(channels: int, dtype: torch.dtype) -> tuple[int, int]:
    """Nodes and channels per program of four warps where edges play no part.

    Examples
    --------
    >>> node_blocks(16, torch.float32), node_blocks(600, torch.float64)
    ((64, 16), (4, 128))
    """
    width = min(128, layout(channels, dtype).BLOCK_C)
    return _NODE_BLOCK * 4 // dtype.itemsize // width, width


def padded(channels: int) -> int:
    """Rows are stored as they are: lanes beyond the last channel are masked."""
    return channels
