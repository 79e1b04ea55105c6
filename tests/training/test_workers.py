"""Runs in several processes are the runs of one process with one thread."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from plap.data import csbm, split
from plap.errors import InputError
from plap.training import RunConfig, train_ensemble, train_runs, tune, workers
from plap.training.results import Progress
from plap.training.workers import WorkerDiedError, train_side_by_side

DATA = csbm(phi=-0.75, n=150, f=10, d=6.0, seed=1)
SPLIT = split(DATA, seed=1)
GIVEN: tuple[Any, Any, Any] = (DATA.graph, DATA.x, DATA.y)
WORTH_FORKING = workers._WORTH_FORKING
CONFIGS = [RunConfig(K=K, p=p, max_epochs=12, seed=3) for K in (1, 3) for p in (1.5, 2.0, 2.5)]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks safely")


@pytest.fixture(autouse=True)
def _two_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(workers, "_WORTH_FORKING", 0)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def with_one_thread(configs: list[RunConfig]) -> Any:
    torch.set_num_threads(1)
    results = train_runs(*GIVEN, configs, SPLIT)
    torch.set_num_threads(2)
    return results


def test_results_are_those_of_one_thread() -> None:
    seen: list[Progress] = []
    found = train_side_by_side(*GIVEN, CONFIGS, SPLIT, progress=seen.append)
    for mine, theirs in zip(found, with_one_thread(CONFIGS), strict=True):
        assert mine.config == theirs.config
        assert torch.equal(mine.logits, theirs.logits)
        assert torch.equal(mine.history.val_loss, theirs.history.val_loss)
        assert all(torch.equal(value, theirs.state[name]) for name, value in mine.state.items())
    assert {state.runs for state in seen} <= {len(CONFIGS)}
    assert [state.done for state in seen] == sorted(state.done for state in seen)


def test_it_happens_in_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(*_: Any, **__: Any) -> Any:
        raise InputError(f"process {os.getpid()}")

    monkeypatch.setattr(workers, "train_runs", elsewhere)
    with pytest.raises(InputError, match=r"process \d+") as caught:
        train_side_by_side(*GIVEN, CONFIGS, SPLIT)
    assert str(os.getpid()) not in str(caught.value)


def test_an_ensemble_of_one_shape_is_shared_out() -> None:
    config = RunConfig(max_epochs=10)
    ensemble = train_ensemble(*GIVEN, SPLIT, config, 4)
    expected = with_one_thread([config.with_values(seed=seed) for seed in range(4)])
    for mine, theirs in zip(ensemble.runs, expected, strict=True):
        assert torch.equal(mine.logits, theirs.logits)


def test_a_search_is_that_of_one_process() -> None:
    found = tune(*GIVEN, SPLIT, budget=300)
    torch.set_num_threads(1)
    alone = tune(*GIVEN, SPLIT, budget=300)
    assert found.best == alone.best
    assert [trial.val_score for trial in found.trials] == [trial.val_score for trial in alone.trials]


def test_a_process_that_dies_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(workers, "train_runs", die)
    with pytest.raises(WorkerDiedError, match="was killed"):
        train_side_by_side(*GIVEN, CONFIGS, SPLIT)


def test_ctrl_c_ends_all_processes_with_their_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_SECONDS", 0.01)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pressed = threading.Event()

    def press(state: Progress) -> None:
        if not pressed.is_set() and state.epoch > 1:
            pressed.set()
            signal.raise_signal(signal.SIGINT)

    try:
        endless = [config.with_values(max_epochs=10**6, patience=10**6) for config in CONFIGS]
        results = train_side_by_side(*GIVEN, endless, SPLIT, progress=press)
    finally:
        signal.signal(signal.SIGINT, before)
    assert all(result.interrupted for result in results)
    assert all(result.best_epoch > 0 for result in results)


def test_large_graphs_and_other_platforms_stay_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workers.processes_for(DATA.graph) == 2
    monkeypatch.setattr(workers, "_MOST_ENTRIES", 10)
    assert workers.processes_for(DATA.graph) == 1
    monkeypatch.setattr(workers, "_MOST_ENTRIES", 10**9)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert workers.processes_for(DATA.graph) == 1


def test_a_few_runs_of_a_deep_network_are_work_enough_for_two_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "_WORTH_FORKING", WORTH_FORKING)
    deep: dict[str, Any] = {"hidden": 64, "layers": 9, "mlp_layers": 1, "output": "linear"}
    small = [RunConfig(max_epochs=100, seed=seed) for seed in range(3)]
    large = [RunConfig("deep-pgnn", max_epochs=100, seed=seed, **deep) for seed in range(3)]
    assert not workers.pays(DATA.graph, small, {})
    assert workers.pays(DATA.graph, large, {})
    assert not workers.pays(DATA.graph, large, {"device": "cuda"})
