"""How the kernels store a row of channels."""

from __future__ import annotations

BLOCK = 8
"""Channels of a row come in multiples of this."""


def layout(channels: int) -> tuple[int, int]:
    """Number of blocks and lanes per block of a row: the padding and the number of blocks are what costs.

    Examples
    --------
    >>> layout(16), layout(33)
    ((1, 16), (3, 16))
    """
    sizes = (BLOCK, 2 * BLOCK, 4 * BLOCK, 8 * BLOCK)
    lanes = min(sizes, key=lambda size: -(-channels // size) * (size + BLOCK))
    return max(1, -(-channels // lanes)), lanes


def padded(channels: int) -> int:
    """Channels of a row as the kernels store it.

    Examples
    --------
    >>> padded(5)
    8
    """
    blocks, lanes = layout(channels)
    return blocks * lanes
