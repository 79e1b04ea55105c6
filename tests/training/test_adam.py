from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from plap.training.adam import Moments, StackedAdam, _update
from plap.training.native import adam_step

LR = (0.01, 0.05, 0.001)
DECAY = (0.0, 5e-4, 0.1)


def gradients(dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(3, 5, 4, generator=generator, dtype=dtype) for _ in range(40)]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-14), (torch.float32, 2e-6)])
def test_every_run_takes_the_steps_of_torch_adam(dtype: torch.dtype, tolerance: float) -> None:
    start = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1), dtype=dtype)
    stacked = StackedAdam(
        [start.clone()], torch.tensor(LR, dtype=torch.float64), torch.tensor(DECAY, dtype=torch.float64)
    )
    single = [torch.nn.Parameter(start[run].clone()) for run in range(3)]
    optimizers = [
        torch.optim.Adam([value], lr=LR[run], weight_decay=DECAY[run]) for run, value in enumerate(single)
    ]
    for gradient in gradients(dtype):
        stacked.step([gradient])
        for run, optimizer in enumerate(optimizers):
            single[run].grad = gradient[run].clone()
            optimizer.step()
    expected = torch.stack([value.detach() for value in single])
    torch.testing.assert_close(stacked.parameters[0], expected, rtol=tolerance, atol=tolerance)


def test_a_run_with_an_infinite_gradient_waits_and_the_others_go_on() -> None:
    rates, none = torch.full((2,), 0.1, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    adam = StackedAdam([torch.ones(2, 3)], rates, none)
    other = StackedAdam([torch.ones(2, 3)], rates, none)
    good, bad = torch.ones(2, 3), torch.ones(2, 3)
    bad[1, 2] = float("inf")
    adam.step([bad])
    other.step([good])
    assert torch.equal(adam.parameters[0][0], other.parameters[0][0])
    assert torch.equal(adam.parameters[0][1], torch.ones(3))
    adam.step([good])
    assert torch.equal(adam.parameters[0][1], other.parameters[0][1])  # as if the bad step had never been


def test_the_runs_that_are_kept_go_on_as_before() -> None:
    def adam() -> StackedAdam:
        rates = torch.tensor(LR, dtype=torch.float64)
        return StackedAdam([torch.ones(3, 5, 4)], rates, torch.tensor(DECAY, dtype=torch.float64))

    full, cut = adam(), adam()
    keep = torch.tensor([0, 2])
    for number, gradient in enumerate(gradients(torch.float32)):
        if number == 7:
            cut.keep(keep)
        full.step([gradient])
        cut.step([gradient if number < 7 else gradient[keep]])
    assert torch.equal(cut.parameters[0], full.parameters[0][keep])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_step_of_other_devices_is_the_one_of_the_cpu(dtype: torch.dtype) -> None:
    scalars = np.array([[0.0, 0.01, 0.3], [5e-4, 0.05, 0.3], [0.1, 0.001, 0.2]])
    shapes = ((3, 5, 4), (3, 7))
    draws = torch.Generator().manual_seed(0)
    tensors = [[torch.rand(*shape, generator=draws, dtype=dtype) for _ in range(4)] for shape in shapes]
    tensors[1][1][2, 3] = torch.inf  # one bad number keeps a run from stepping with all of its parameters
    ours, theirs = ([[value.clone() for value in each] for each in tensors] for _ in range(2))
    rows = [[*(value.data_ptr() for value in each), each[0][0].numel()] for each in ours]
    taken = adam_step(np.array(rows), scalars, double=dtype == torch.float64)
    assert taken.tolist() == [True, True, False]
    decay, size, root = torch.from_numpy(scalars).unbind(1)
    for k, each in enumerate(theirs):
        value, gradient, first, second = each
        _update(value, gradient, first, second, torch.from_numpy(taken), decay, size, root)
        for one, other in zip(ours[k], each, strict=True):
            torch.testing.assert_close(one, other)
        assert torch.equal(ours[k][0][2], tensors[k][0][2])  # a run without a step keeps its parameters


def test_a_state_that_is_loaded_goes_on_as_before() -> None:
    rates, decay = torch.tensor(LR, dtype=torch.float64), torch.tensor(DECAY, dtype=torch.float64)
    steps = gradients(torch.float32)
    whole = StackedAdam([torch.ones(3, 5, 4)], rates, decay)
    for gradient in steps[:10]:
        whole.step([gradient])
    resumed = StackedAdam([whole.parameters[0].clone()], rates, decay)
    resumed.load_state([Moments(*(value.clone() for value in each)) for each in whole.state()])
    for gradient in steps[10:]:
        whole.step([gradient])
        resumed.step([gradient])
    assert torch.equal(whole.parameters[0], resumed.parameters[0])
