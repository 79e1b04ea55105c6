"""What the Triton kernels are given: everything is on the device, and long rows are cut into segments."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import problems
from one_device import META, OneDevice
from plap.kernels import row_passes
from plap.kernels.penalty_code import key_of
from plap.kernels.row_passes import Rule
from plap.kernels.triton.segments import SEGMENT, segments
from plap.penalties import MCP

pytest.importorskip("triton", reason="the extra 'gpu' is not installed")

from plap.kernels.triton import launcher

NAMES = (
    "scale_rows", "forward_rows", "finish_hubs", "prepare_rows", "backward_rows", "finish_hubs_backward",
    "weight_rows",
)  # fmt: skip


class Recorder:
    """A kernel that is only looked at."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self._name, self._seen = name, seen

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        assert all(isinstance(size, int) and size > 0 for size in grid)

        def launch(*arguments: Any, **constants: Any) -> None:
            for value in (*arguments, *constants.values()):
                assert not isinstance(value, Tensor) or value.device == META, f"{self._name} reads the host"
                assert not isinstance(value, float), f"{self._name}: Triton would round it to float32"
            self._seen.append(self._name)

        return launch


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("channels", [5, 600])
def test_kernels_read_no_host_data(monkeypatch: pytest.MonkeyPatch, channels: int, detach: bool) -> None:
    """Neither do the operations around them: not one number is copied to the host."""
    seen: list[str] = []
    for name in NAMES:
        monkeypatch.setattr(launcher, name, Recorder(name, seen))
    graph = problems.star(SEGMENT + 10).to(META)
    x, grad = (torch.empty(2, graph.num_nodes, channels, device=META) for _ in range(2))
    gamma, mu = (torch.empty(2, dtype=torch.float64, device=META) for _ in range(2))
    weight = graph.weight.float()
    inputs = (graph.indptr, graph.indices, weight, graph.degree, gamma, mu)
    rule = Rule(key_of(MCP, ()), 1.0, detach)
    with OneDevice():
        saved = row_passes.forward(launcher.KERNELS, x, *inputs, 3, 0.7, 0.0, 2, rule)
        row_passes.backward(
            launcher.KERNELS, grad, saved, x, *inputs, 0.7, 0.0, 2, rule, want_weight=True,
            want_parameter=True,
        )  # fmt: skip
    assert set(seen) == set(NAMES)


def test_a_star_of_a_hundred_thousand_leaves_is_summed_by_many_programs() -> None:
    leaves = 100_000
    indptr = torch.cat([torch.tensor([0, leaves]), leaves + 1 + torch.arange(leaves)])
    found = segments(indptr, 2 * leaves)
    assert found is not None
    row, first, end, slot = found.table
    assert int((row == 0).sum()) == -(-leaves // SEGMENT)
    covered = torch.zeros(2 * leaves + 1, dtype=torch.int64)
    covered.index_add_(0, first[row >= 0], torch.ones_like(first[row >= 0]))
    covered.index_add_(0, end[row >= 0], -torch.ones_like(end[row >= 0]))
    assert covered.cumsum(0)[:-1].eq(1).all()
    assert slot[row > 0].eq(-1).all()
    used = slot[row == 0]
    assert used.equal(torch.arange(used.shape[0]))
    assert found.slots >= used.shape[0]
    assert found.hubs[:, 0].tolist() == [0, 0, used.shape[0]]
    assert found.hubs[0, 1:].eq(-1).all()
