"""What the Triton kernels would take on an A100 and an H100, from their binaries; measures nothing.

``python benchmarks/roofline.py`` prints the tables of docs/scale.md, section "GPUs: a prediction".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch

import propagation
from cost_model import REAL
from plap.kernels.triton.layout import layout
from plap.penalties import Power
from sass_loop import Loop, loop_of
from triton_binaries import Binary, compiled

K = propagation.K
SIZES = ((*propagation.SMALL, 16), (*propagation.SMALL, 64), (*propagation.LARGE, 16))
"""Nodes, entries and channels of ``plap bench propagation``."""

FLOPS = {"forward": 7, "backward": 12}
"""Additions and multiplications per entry and channel.

A difference (1), its square (2), the square of the neighbour (2) and a weighted sum (2); backward, a sum of
two terms (4) in its place, and another difference (1) and inner product (2)."""

ROWS = {"forward": 1, "backward": 2}
"""Rows of a neighbour that are read per entry: Y; Y and Z."""

STREAMED = {"forward": 3, "backward": 10}
"""Rows per node that are read or written once.

Y, X and the result; backward, G, Y, Z and ∂l/∂X twice each, F' and Y(0)."""


@dataclass(frozen=True)
class GPU:
    """Figures of its maker."""

    name: str
    target: str
    multiprocessors: int
    gigahertz: float
    """At most."""
    memory: float
    """Bytes per second."""
    cache: float
    """Bytes of L2."""
    cache_width: int
    """Bytes per cycle that L2 gives; NVIDIA tells it of the A100, the H100 is taken to have the same."""

    @property
    def instructions(self) -> float:
        """That warps can begin per second: four per multiprocessor and cycle."""
        return 4e9 * self.multiprocessors * self.gigahertz

    @property
    def flops(self) -> float:
        """In float32: 128 lanes, a multiplication and an addition each."""
        return 256e9 * self.multiprocessors * self.gigahertz


GPUS = (
    GPU("A100", "sm_80", 108, 1.41, 1555e9, 40e6, 5120),
    GPU("H100", "sm_90", 132, 1.98, 3352e9, 50e6, 5120),
)
"""A100 SXM with 40 GB and H100 SXM."""


@cache
def binary(kernel: str, gpu: GPU, channels: int) -> Binary:
    """The kernel of a training step whose p is not learned."""
    if kernel == "backward":
        return compiled(kernel, gpu.target, Power(1.5), channels, flags={"WANT": False})
    return compiled(kernel, gpu.target, Power(1.5), channels)


def programs(found: Binary, warps: int) -> int:
    """That a multiprocessor holds at a time: 65536 registers, 256 at a time per warp, 32 programs at most."""
    per_warp = -(-found.registers * 32 // 256) * 256
    return min(32, 65536 // (per_warp * warps))


def entry_bytes(kernel: str, channels: int) -> int:
    """Read per entry: rows, index and weight; backward, also u of the neighbour."""
    return ROWS[kernel] * channels * REAL + 2 * REAL + (REAL if kernel == "backward" else 0)


@dataclass(frozen=True)
class Prediction:
    """Seconds that a step takes at least, by what limits it."""

    instructions: float
    cache: float
    memory: float
    flops: float

    @property
    def seconds(self) -> float:
        """The longest of them."""
        return max(self.instructions, self.cache, self.memory, self.flops)

    @property
    def limit(self) -> str:
        """Which it is."""
        return max(vars(self), key=lambda name: float(getattr(self, name)))


def predict(kernel: str, gpu: GPU, nodes: int, entries: int, channels: int) -> Prediction:
    """A step, backward together with what it needs of nodes.

    A row whose neighbours do not fill its last block of entries wastes half a block on average. Rows of
    neighbours come from memory if all rows do not fit into L2, and from L2 if they do.
    """
    blocks = layout(channels, torch.float32)
    loop: Loop = loop_of(binary(kernel, gpu, channels).code)
    turns = entries / blocks.BLOCK_E + nodes / 2
    executed = blocks.warps * (turns * loop.shortest + nodes * loop.around)
    gathered = entries * ROWS[kernel] * channels * REAL
    streamed = entries * (entry_bytes(kernel, channels) - ROWS[kernel] * channels * REAL)
    streamed += nodes * STREAMED[kernel] * channels * REAL
    fits = nodes * ROWS[kernel] * channels * REAL <= gpu.cache
    return Prediction(
        instructions=executed / gpu.instructions,
        cache=(gathered + streamed) / (gpu.cache_width * gpu.gigahertz * 1e9),
        memory=(streamed if fits else gathered + streamed) / gpu.memory,
        flops=entries * FLOPS[kernel] * channels / gpu.flops,
    )


def launches(steps: int) -> tuple[int, int]:
    """Triton kernels of a forward pass and of a backward pass, where there may be hubs."""
    return 1 + 2 * steps, 3 * steps


def kernel_table() -> str:
    """What the binaries say, per entry and step."""
    lines = [
        "| | C | registers | shared memory | programs at a time | instructions | bytes | flops |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for gpu in GPUS:
        for kernel in ("forward", "backward"):
            for channels in (16, 64):
                found, blocks = binary(kernel, gpu, channels), layout(channels, torch.float32)
                loop = loop_of(found.code)
                least, most = (blocks.warps * part / blocks.BLOCK_E for part in (loop.shortest, loop.longest))
                lines.append(
                    f"| {kernel}, {gpu.target} | {channels} | {found.registers} | {found.shared} B | "
                    f"{programs(found, blocks.warps)} | {least:.0f} to {most:.0f} | "
                    f"{entry_bytes(kernel, channels)} | {FLOPS[kernel] * channels} |"
                )
    return "\n".join(lines)


def prediction_table() -> str:
    """Milliseconds of K steps at least, and what limits them."""
    heads = [f"{gpu.name} {way}" for gpu in GPUS for way in ("forward", "with backward")]
    lines = [f"| nodes, entries, C | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    for nodes, entries, channels in SIZES:
        cells = []
        for gpu in GPUS:
            forward, backward = (
                predict(kernel, gpu, nodes, entries, channels) for kernel in ("forward", "backward")
            )
            both = forward.seconds + backward.seconds
            cells.append(f"{1e3 * K * forward.seconds:.3g} ms ({forward.limit})")
            cells.append(f"{1e3 * K * both:.3g} ms ({backward.limit})")
        lines.append(f"| {nodes:,}, {entries:,}, {channels} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(kernel_table(), prediction_table(), launches(K), sep="\n\n")
