"""How the kernels are compiled: Triton's decorator with a type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton

compiled: Callable[[Callable[..., Any]], Any] = triton.jit
"""For kernels, which are launched as ``kernel[grid](...)``, and for the functions that they call."""
