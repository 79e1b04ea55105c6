"""How the passes of :mod:`plap.kernels.row_passes` run here: Triton kernels on the device of the tensors."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from plap.kernels.penalty_code import POWER
from plap.kernels.row_passes import AllSteps, Kernels, Rule, Wanted
from plap.kernels.triton.backward_rows import backward_rows, finish_hubs_backward, prepare_rows, weight_rows
from plap.kernels.triton.forward_rows import finish_hubs, forward_rows, scale_rows
from plap.kernels.triton.layout import layout, node_blocks, padded
from plap.kernels.triton.penalty_functions import functions_of
from plap.kernels.triton.segments import segments


class Launcher:
    """Launches kernels and waits for nothing; see :class:`plap.kernels.row_passes.Launcher`."""

    YZ_parts = 1
    all_steps: AllSteps | None = None

    def __init__(
        self, x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor, parameter: Tensor,
        mu: Tensor, omega: float, eps: float, rule: Rule, wanted: Wanted | None = None, *,
        only_x: bool = False,
    ) -> None:  # fmt: skip
        # only_x saves nothing here yet: all that a backward pass may want is made
        self._runs, self._nodes, self._channels = x.shape
        self._indptr, self._indices, self._w = indptr, indices, weight
        self._s = torch.where(degree > 0, degree.rsqrt(), 0.0).to(x.dtype)
        c = parameter if rule.penalty == POWER else rule.c
        m = (2 * mu / c).clamp(min=torch.finfo(x.dtype).tiny)
        columns = (parameter, m, torch.full_like(m, omega), torch.full_like(m, eps * eps))
        self._settings = torch.stack(columns)
        self._layout = layout(self._channels, x.dtype)
        self._blocks_of_nodes = node_blocks(self._channels, x.dtype)
        functions = functions_of(rule.penalty)
        self._psi = {"PSI": functions.psi, "UNBOUNDED": functions.unbounded}
        self._slope, self._rate = functions.slope, functions.rate
        self._edges = {"CLAMP": eps > 0, "DOUBLE": x.dtype == torch.float64}
        self._damped = omega != 1.0
        self._segments = segments(indptr, indices.shape[0])
        slots = 0 if self._segments is None else self._segments.slots
        self._slots = slots
        self._sums = x.new_empty(self._runs * slots * (self._channels + 2))
        self._totals = x.new_empty(0)
        self._device = x.device

    def __call__(self, kernel: str, *, flag: bool = False, **tensors: Tensor) -> None:
        """Run a kernel."""
        if self._nodes:
            with _on(self._device):
                getattr(self, f"_{kernel}")(flag, **tensors)

    def _scale(self, flag: bool, *, X: Tensor, Y: Tensor, **_: Tensor) -> None:
        block_n, block_c = self._blocks_of_nodes
        grid = (-(-self._nodes // block_n), -(-self._channels // block_c), self._runs)
        scale_rows[grid](
            self._s, X, Y, self._nodes, self._channels, BLOCK_N=block_n, BLOCK_C=block_c, num_warps=4,
            enable_fp_fusion=True,
        )  # fmt: skip

    def _forward(self, last: bool, *, X: Tensor, Y: Tensor, out: Tensor, alphas: Tensor, **_: Tensor) -> None:
        flags = {"LAST": last, "DAMPED": self._damped}
        buffers = (X, Y, out, alphas, self._sums)
        forward_rows[self._grid()](
            self._indptr, self._indices, self._w, self._s, self._settings, self._table(), *buffers,
            self._programs(), self._slots, *self._sizes(), **self._psi, **self._edges, **flags,
            **self._blocks(),
        )  # fmt: skip
        if self._segments is not None and self._segments.hubs.shape[1]:
            hubs = self._segments.hubs
            finish_hubs[(hubs.shape[1], *self._grid()[1:])](
                hubs, self._s, self._settings, *buffers, hubs.shape[1], self._slots, *self._sizes(), **flags,
                BLOCK_C=self._layout.BLOCK_C, num_warps=self._layout.warps, enable_fp_fusion=True,
            )  # fmt: skip

    def _prepare(
        self, raw: bool, *, Y: Tensor, F_next: Tensor, Y_first: Tensor, G: Tensor, YZ: Tensor, u: Tensor,
        t: Tensor, pull: Tensor, gX: Tensor, gm: Tensor, alphas: Tensor, **_: Tensor,
    ) -> None:  # fmt: skip
        block_n, block_c = self._blocks_of_nodes
        prepare_rows[(-(-self._nodes // block_n), self._runs)](
            self._s, self._settings, alphas, Y, F_next, Y_first, G, YZ, u, t, pull, gX, gm, *self._sizes(),
            RAW=raw, DAMPED=self._damped, BLOCK_N=block_n, BLOCK_C=block_c, num_warps=4,
            enable_fp_fusion=True,
        )  # fmt: skip

    def _backward(
        self, want: bool, *, Y: Tensor, YZ: Tensor, u: Tensor, G: Tensor, yf: Tensor,
        gp: Tensor | None = None, detach: bool = False, **_: Tensor,
    ) -> None:  # fmt: skip
        flags = {"DAMPED": self._damped, "WANT": want}
        parts = yf.new_empty(self._layout.BLOCKS + 1, *yf.shape)
        outputs = (G, parts, self._settings if gp is None else gp, self._sums)
        backward_rows[self._grid()](
            self._indptr, self._indices, self._w, self._s, self._settings, self._table(), Y, YZ, u,
            *outputs, self._programs(), self._slots, *self._sizes(), **self._psi, SLOPE=self._slope,
            RATE=self._rate, **self._edges, **flags, DETACH=detach, **self._blocks(),
        )  # fmt: skip
        if self._segments is not None and self._segments.hubs.shape[1]:
            hubs = self._segments.hubs
            finish_hubs_backward[(hubs.shape[1], *self._grid()[1:])](
                hubs, self._s, self._settings, Y, *outputs, hubs.shape[1], self._slots, *self._sizes(),
                **flags, BLOCK_C=self._layout.BLOCK_C, num_warps=self._layout.warps, enable_fp_fusion=True,
            )  # fmt: skip
        self._totals = parts[0]
        torch.sum(parts[1:], 0, out=yf)

    def _detached(self, flag: bool, **tensors: Any) -> None:
        self._backward(False, detach=True, **tensors)

    def _weight(
        self, detach: bool, *, Y: Tensor, YZ: Tensor, t: Tensor, pull: Tensor, yf: Tensor, gw: Tensor,
        **_: Tensor,
    ) -> None:  # fmt: skip
        """Also D_i is the sum of its row: every entry of the row has the slope in it."""
        if not gw.shape[0]:
            return
        m = self._settings[1].to(yf.dtype)[:, None]
        through_degree = (-0.5 * self._s.square() * (yf - t * self._totals - m * pull)).sum(0)
        lengths = self._indptr[1:] - self._indptr[:-1]
        gw += torch.repeat_interleave(through_degree, lengths.long(), output_size=gw.shape[0])
        weight_rows[(self._grid()[0],)](
            self._indptr, self._indices, self._w, self._settings, self._table(), Y, YZ, t, gw,
            self._programs(), *self._sizes(), **self._psi, SLOPE=self._slope, **self._edges, DETACH=detach,
            **self._blocks(),
        )  # fmt: skip

    def _sizes(self) -> tuple[int, int, int]:
        return self._nodes, self._channels, self._runs

    def _programs(self) -> int:
        return self._nodes if self._segments is None else self._segments.table.shape[1]

    def _table(self) -> Tensor:
        return self._indptr if self._segments is None else self._segments.table

    def _grid(self) -> tuple[int, int, int]:
        return self._programs(), self._layout.BLOCKS, self._runs

    def _blocks(self) -> dict[str, Any]:
        return {
            "SPLIT": self._segments is not None,
            "BLOCK_E": self._layout.BLOCK_E,
            "BLOCK_C": self._layout.BLOCK_C,
            "BLOCKS": self._layout.BLOCKS,
            "num_warps": self._layout.warps,
            "enable_fp_fusion": True,
        }


def _on(device: torch.device) -> AbstractContextManager[Any]:
    """Triton launches on the current device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


KERNELS = Kernels(Launcher, padded)
