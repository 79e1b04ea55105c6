"""What the Triton kernels are given: everything is on the device, and long rows are cut into segments."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import plap
import problems
from one_device import META, OneDevice
from plap.kernels import row_passes
from plap.kernels.budget import KEEP_ALL
from plap.kernels.penalty_code import key_of
from plap.kernels.row_passes import POWERS, Rule
from plap.kernels.triton.segments import SEGMENT, segments
from plap.penalties import MCP

pytest.importorskip("triton", reason="the extra 'gpu' is not installed")

import roofline
import triton_binaries
from plap.kernels.triton import launcher

NAMES = (
    "scale_rows", "forward_rows", "finish_hubs", "prepare_rows", "backward_rows", "finish_hubs_backward",
    "weight_rows",
)  # fmt: skip


class Launch(NamedTuple):
    """One that was asked for."""

    kernel: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    constants: dict[str, Any]


class Recorder:
    """A kernel that is only looked at."""

    def __init__(self, name: str, seen: list[Launch]) -> None:
        self._name, self._seen = name, seen

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        assert all(isinstance(size, int) and size > 0 for size in grid)

        def launch(*arguments: Any, **constants: Any) -> None:
            for value in (*arguments, *constants.values()):
                assert not isinstance(value, Tensor) or value.device == META, f"{self._name} reads the host"
                assert not isinstance(value, float), f"{self._name}: Triton would round it to float32"
            self._seen.append(Launch(self._name, grid, arguments, constants))

        return launch


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """What is launched, in order."""
    launched: list[Launch] = []
    for name in NAMES:
        monkeypatch.setattr(launcher, name, Recorder(name, launched))
    return launched


def propagate_on_meta(
    graph: plap.Graph, channels: int, K: int, rule: Rule, *, omega: float = 1.0, every: int = KEEP_ALL,
    runs: int = 2, want: bool = True,
) -> None:  # fmt: skip
    """Forward and backward on a device that has shapes and no numbers."""
    x, grad = (torch.empty(runs, graph.num_nodes, channels, device=META) for _ in range(2))
    gamma, mu = (torch.empty(runs, dtype=torch.float64, device=META) for _ in range(2))
    inputs = (graph.indptr, graph.indices, graph.weight.float(), graph.degree, gamma, mu)
    with OneDevice():
        saved = row_passes.forward(launcher.KERNELS, x, *inputs, K, omega, 0.0, every, rule)
        row_passes.backward(
            launcher.KERNELS, grad, saved, x, *inputs, omega, 0.0, every, rule, want_weight=want,
            want_parameter=want,
        )  # fmt: skip


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("channels", [5, 600])
def test_kernels_read_no_host_data(seen: list[Launch], channels: int, detach: bool) -> None:
    """Neither do the operations around them: not one number is copied to the host."""
    graph = problems.star(SEGMENT + 10).to(META)
    propagate_on_meta(graph, channels, 3, Rule(key_of(MCP, ()), 1.0, detach), omega=0.7, every=2)
    assert {launch.kernel for launch in seen} == set(NAMES)


def test_a_star_of_a_hundred_thousand_leaves_is_launched_as_what_was_compiled(seen: list[Launch]) -> None:
    """The binaries that ``test_binaries`` looks at have the constants of a real launch."""
    propagate_on_meta(problems.star(100_000).to(META), 64, 2, POWERS, runs=1)
    assert {launch.kernel for launch in seen} == set(NAMES)
    kernels = {kernel.__name__: kernel for kernel in triton_binaries.KERNELS.values()}
    for launch in seen:
        function = kernels[launch.kernel]
        expected = triton_binaries.constants_of(function, None, 64, torch.float32)
        given = dict(zip(function.arg_names, launch.arguments, strict=False)) | launch.constants
        varying = {"LAST", "RAW"}  # the last step writes F itself
        assert {name: given[name] for name in expected if name not in varying} == {
            name: value for name, value in expected.items() if name not in varying
        }
        if launch.kernel in ("forward_rows", "backward_rows"):
            assert launch.grid == (100_001 + 200_000 // SEGMENT, 1, 1)
        assert launch.constants["num_warps"] == (4 if "BLOCK_N" in expected else 1)


@pytest.mark.parametrize("K", [1, 4])
def test_as_many_launches_as_the_prediction_counts(seen: list[Launch], K: int) -> None:
    propagate_on_meta(problems.star(SEGMENT + 10).to(META), 16, K, POWERS, want=False)
    assert len(seen) == sum(roofline.launches(K))


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
