"""The Triton kernels compiled ahead of time, for GPUs that need not be there: registers, spills, memory."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from plap.kernels.penalty_code import POWER, key_of
from plap.kernels.triton import backward_rows, forward_rows
from plap.kernels.triton.layout import layout, node_blocks
from plap.kernels.triton.penalty_functions import functions_of
from plap.penalties import Penalty, Power

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}

KERNELS: dict[str, Any] = {
    "scale": forward_rows.scale_rows,
    "forward": forward_rows.forward_rows,
    "finish_hubs": forward_rows.finish_hubs,
    "prepare": backward_rows.prepare_rows,
    "backward": backward_rows.backward_rows,
    "finish_hubs_backward": backward_rows.finish_hubs_backward,
    "weight": backward_rows.weight_rows,
}

_DOUBLES = {"settings", "gm", "gp"}
_LONGS = {"segments", "hubs"}
_SIZES = {"count", "slots", "nodes", "runs"}


@dataclass(frozen=True)
class Binary:
    """What the compiler's own tools say of a kernel."""

    kernel: str
    target: str
    registers: int
    """Per thread; on AMD, vector registers."""
    spilled: int
    """Bytes per thread of registers kept in memory; 0 where all fit. On AMD, a scalar register that is kept
    in a lane of a vector register is not in memory and does not count."""
    shared: int
    """Bytes of shared memory per program."""
    instructions: dict[str, int]
    """How often the assembly has loads, stores and arithmetic of each kind."""
    code: str = field(repr=False)
    """The assembly."""


def compiled(
    kernel: str, target: str, penalty: Penalty | None = None, channels: int = 64,
    dtype: torch.dtype = torch.float32, *, aligned: bool = True, index: str = "i32",
    flags: Mapping[str, int] = MappingProxyType({}),
) -> Binary:  # fmt: skip
    """Compile a kernel as the launcher calls it; ``flags`` are constants such as WANT or runs = 1.

    Triton compiles anew for arrays that do not begin at a multiple of 16 bytes, which happens where the
    number of channels is no multiple of 4; they are not ``aligned``.
    """
    function = KERNELS[kernel]
    constants = constants_of(function, penalty, channels, dtype) | dict(flags)
    real = "*fp64" if dtype == torch.float64 else "*fp32"
    signature = {
        name: _type(name, real, index) if name not in constants else "constexpr"
        for name in function.arg_names
    }
    pointers = [place for place, kind in enumerate(signature.values()) if kind.startswith("*")]
    hints = {(place,): [["tt.divisibility", 16]] for place in pointers if aligned}
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=hints)
    warps = 4 if kernel in ("scale", "prepare") else layout(channels, dtype).warps
    options = {"num_warps": warps, "enable_fp_fusion": True}
    result = triton.compile(source, target=TARGETS[target], options=options)
    read = _amd if target.startswith("gfx") else _nvidia
    registers, spilled, code = read(result.asm)
    instructions = _counted(code, amd=target.startswith("gfx"))
    return Binary(kernel, target, registers, spilled, result.metadata.shared, instructions, code)


def constants_of(function: Any, penalty: Penalty | None, channels: int, dtype: torch.dtype) -> dict[str, Any]:
    """What the launcher fixes at compile time, on a graph with more entries than a segment has."""
    key = POWER
    if penalty is not None and not isinstance(penalty, Power):
        key = key_of(type(penalty), tuple(penalty.constants.items()))
    functions = functions_of(key)
    blocks = layout(channels, dtype)
    block_n, block_c = node_blocks(channels, dtype)
    if "BLOCK_N" not in function.arg_names:
        block_c = blocks.BLOCK_C
    values = {
        "PSI": functions.psi, "SLOPE": functions.slope, "RATE": functions.rate,
        "UNBOUNDED": functions.unbounded, "CLAMP": False, "DOUBLE": dtype == torch.float64, "LAST": False,
        "DAMPED": False, "RAW": False, "DETACH": False, "WANT": True, "SPLIT": True,
        "BLOCK_E": blocks.BLOCK_E, "BLOCK_C": block_c, "BLOCKS": blocks.BLOCKS, "BLOCK_N": block_n,
        "channels": channels,
    }  # fmt: skip
    return {name: value for name, value in values.items() if name in function.arg_names}


def _type(name: str, real: str, index: str) -> str:
    if name in _SIZES:
        return "i32"
    if name in ("indptr", "indices"):
        return f"*{index}"
    return "*i64" if name in _LONGS else "*fp64" if name in _DOUBLES else real


def _nvidia(asm: dict[str, Any]) -> tuple[int, int, str]:
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(asm["cubin"])
        file.flush()
        usage = _output(tools / "cuobjdump", "--dump-resource-usage", file.name)
        code = _output(tools / "nvdisasm", "-c", file.name)
    found = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", usage)
    assert found is not None, usage
    return int(found[1]), int(found[2]) + int(found[4]), code


def _amd(asm: dict[str, Any]) -> tuple[int, int, str]:
    text: str = asm["amdgcn"]
    numbers = {name: int(value) for name, value in re.findall(r"\.(\w+_count):\s+(\d+)", text)}
    scratch = re.search(r"\.private_segment_fixed_size:\s+(\d+)", text)
    assert scratch is not None
    return numbers["vgpr_count"], int(scratch[1]), text


def _output(*command: Any) -> str:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def _counted(code: str, *, amd: bool) -> dict[str, int]:
    named = r"([a-z]+_[a-z0-9_]+)" if amd else r"(?:/\*[0-9a-f]+\*/)?\s*(?:@!?U?P\w+ )?([A-Z][A-Z0-9_.]+)"
    counts: dict[str, int] = {}
    for name in re.findall(rf"^\s+{named}", code, re.MULTILINE):
        short = name.split(".")[0]
        counts[short] = counts.get(short, 0) + 1
    return counts
