"""The Triton kernels as machine code for GPUs that are not here: they compile, and nothing spills."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the extra 'gpu' is not installed")

import triton_binaries
from plap.penalties import MCP, SCAD, Cauchy, Geman, Huber, Penalty, Power, Welsch
from triton_binaries import KERNELS, TARGETS, compiled

MOST_REGISTERS = {"sm_80": 168, "sm_90": 168, "sm_100": 168, "gfx942": 128}
"""Per thread: with 168, a multiprocessor has room for twelve programs of one warp each."""

MOST_SHARED = 2048
"""Bytes per program."""

SHORT = [
    ("forward", "sm_80", Power(1.5), 16),
    ("backward", "sm_90", MCP(0.7), 64),
    ("weight", "sm_100", Power(1.5), 128),
    ("backward", "gfx942", Power(1.5), 16),
    ("forward", "gfx942", SCAD(0.3), 64),
    ("prepare", "sm_80", None, 64),
    ("finish_hubs", "sm_80", None, 64),
]


def check(
    kernel: str, target: str, penalty: Penalty | None, channels: int, dtype: torch.dtype, *, aligned: bool
) -> None:
    found = compiled(kernel, target, penalty, channels, dtype, aligned=aligned)
    assert found.spilled == 0, found
    assert 0 < found.registers <= MOST_REGISTERS[target], found
    assert found.shared <= MOST_SHARED, found


@pytest.mark.parametrize(("kernel", "target", "penalty", "channels"), SHORT, ids=str)
def test_compiles_without_spills(kernel: str, target: str, penalty: Penalty | None, channels: int) -> None:
    check(kernel, target, penalty, channels, torch.float32, aligned=True)


def test_arrays_that_begin_anywhere_compile_without_spills() -> None:
    """As the rows of an odd number of channels do; they need the most registers."""
    check("backward", "sm_80", Power(1.5), 15, torch.float32, aligned=False)


VARIANTS: tuple[dict[str, int], ...] = (
    {"LAST": True}, {"RAW": True}, {"DAMPED": True}, {"CLAMP": True}, {"SPLIT": False}, {"DETACH": True},
    {"DETACH": True, "WANT": False}, {"runs": 1}, {"runs": 1, "nodes": 1, "count": 1, "slots": 1},
)  # fmt: skip
"""What else a launch may fix: Triton makes a constant of an integer that is 1."""


def variants_of(kernel: str) -> list[dict[str, int]]:
    known = set(KERNELS[kernel].arg_names)
    return [variant for variant in VARIANTS if set(variant) <= known]


def test_wide_rows_of_float64_compile_without_spills() -> None:
    check("prepare", "sm_90", None, 128, torch.float64, aligned=True)


def test_the_kernels_of_a_single_damped_run_compile() -> None:
    for kernel, flags in (
        ("forward", {"LAST": True, "DAMPED": True, "runs": 1}),
        ("backward", {"CLAMP": True, "DAMPED": True, "runs": 1}),
        ("weight", {"runs": 1}),
    ):
        found = compiled(kernel, "sm_90", SCAD(0.3), 16, flags=flags)
        assert found.spilled == 0, found


def test_indices_of_64_bits_compile() -> None:
    assert compiled("backward", "sm_80", Power(1.5), 16, index="i64", flags={"SPLIT": False}).spilled == 0


@pytest.mark.long
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_variant_compiles(kernel: str) -> None:
    """The interpreter does not look at types, so that only the compiler finds what does not fit together."""
    for penalty in (Power(1.5), MCP(0.7)):
        for variant in variants_of(kernel):
            for dtype in (torch.float32, torch.float64):
                found = compiled(kernel, "sm_90", penalty, 16, dtype, flags=variant)
                assert found.spilled == 0, (variant, found)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_everything_compiles_without_spills(kernel: str, target: str) -> None:
    asks = {"forward", "backward", "weight"}
    penalties = (Power(1.5), MCP(1.0), SCAD(1.0), Huber(1.0), Welsch(1.0), Geman(1.0), Cauchy(1.0))
    for dtype in (torch.float32, torch.float64):
        for channels in (1, 16, 64, 99, 128):
            for penalty in penalties if kernel in asks and channels in (16, 128) else penalties[:1]:
                check(kernel, target, penalty, channels, dtype, aligned=channels % 4 == 0)


@pytest.mark.long
def test_rows_wider_than_a_block_compile() -> None:
    for kernel in ("forward", "backward", "weight"):
        assert compiled(kernel, "sm_90", Power(1.5), 1000).registers > 0


def test_a_kernel_has_no_atomics() -> None:
    """Every number is written by one program, so results repeat bit for bit."""
    for kernel, target in (("backward", "sm_90"), ("forward", "sm_80")):
        found = compiled(kernel, target, MCP(0.7) if kernel == "backward" else Power(1.5), 64)
        assert found.instructions.get("LDG", 0) > 0
        assert not {"RED", "ATOM", "ATOMG", "REDG"} & set(found.instructions)


def test_limits_are_of_known_targets() -> None:
    assert set(MOST_REGISTERS) == set(triton_binaries.TARGETS)
