"""A run is reported once, when it ends, before the others go on."""

from __future__ import annotations

import pytest
import torch

import tiny_training as tiny
from plap.training import Progress, RunConfig, RunResult, train_runs

DATA = tiny.data()
SPLIT = tiny.masks(DATA.y)


def test_every_run_is_reported_as_soon_as_it_ends() -> None:
    configs = [RunConfig(max_epochs=n, patience=100) for n in (9, 4, 6)] + [
        RunConfig(model="mlp", max_epochs=2)
    ]
    told: dict[int, RunResult] = {}
    when: list[tuple[int, int]] = []
    epoch = 0

    def progress(state: Progress) -> None:
        nonlocal epoch
        epoch = state.epoch

    def finished(run: int, result: RunResult) -> None:
        when.append((run, epoch))
        told[run] = result

    results = train_runs(DATA.graph, DATA.x, DATA.y, configs, SPLIT, progress=progress, finished=finished)
    assert when == [(1, 3), (2, 5), (0, 8), (3, 1)]
    for run, result in enumerate(results):
        assert told[run] is result


def test_an_interrupted_run_is_not_reported() -> None:
    configs = [RunConfig(max_epochs=n) for n in (9, 2)] + [RunConfig(model="mlp", max_epochs=2)]
    told = []

    def progress(state: Progress) -> None:
        if state.epoch == 5:
            raise KeyboardInterrupt

    results = train_runs(
        DATA.graph,
        DATA.x,
        DATA.y,
        configs,
        SPLIT,
        progress=progress,
        finished=lambda run, _: told.append(run),
    )
    assert told == [1]
    assert [result.interrupted for result in results] == [True, False, True]


def test_an_error_of_the_receiver_is_passed_on() -> None:
    def finished(run: int, result: RunResult) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        train_runs(DATA.graph, DATA.x, DATA.y, [RunConfig(max_epochs=2)], SPLIT, finished=finished)


def test_ctrl_c_while_a_result_is_stored_keeps_that_result() -> None:
    def finished(run: int, result: RunResult) -> None:
        raise KeyboardInterrupt

    configs = [RunConfig(max_epochs=n) for n in (9, 2)]
    long, short = train_runs(DATA.graph, DATA.x, DATA.y, configs, SPLIT, finished=finished)
    assert (long.interrupted, long.epochs) == (True, 2)
    assert (short.interrupted, short.epochs) == (False, 2)
    assert bool(torch.isfinite(long.logits).all())
