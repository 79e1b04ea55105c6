"""Every door takes a device, and it arrives where training happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import plap
import tiny_training as tiny
from command import run
from plap.training import RunConfig, SearchSpace, loop, train_ensemble, train_runs, tune

SENTENCE = r"device must be auto, cpu, cuda, cuda:N or mps, not 'tpu'"


def by_fit(device: str, folder: Path) -> None:
    plap.fit(tiny.data(), device=device)


def by_classifier(device: str, folder: Path) -> None:
    data = tiny.data()
    plap.PGNNClassifier(device=device).fit(data.graph, data.x, data.y)


def by_regressor(device: str, folder: Path) -> None:
    data = tiny.data()
    plap.PGNNRegressor(device=device).fit(data.graph, data.x, data.y.double() + 0.5)


def by_runs(device: str, folder: Path) -> None:
    data = tiny.data()
    train_runs(data.graph, data.x, data.y, [RunConfig(max_epochs=1)], tiny.masks(data.y), device=device)


def by_tuning(device: str, folder: Path) -> None:
    data = tiny.data()
    tune(data.graph, data.x, data.y, tiny.masks(data.y), space=SearchSpace(), device=device)


def by_ensemble(device: str, folder: Path) -> None:
    data = tiny.data()
    train_ensemble(data.graph, data.x, data.y, tiny.masks(data.y), RunConfig(max_epochs=1), device=device)


def by_reproduction(device: str, folder: Path) -> None:
    plap.reproduce("heterophilic", quick=True, out=folder, device=device)


DOORS = (by_fit, by_classifier, by_regressor, by_runs, by_tuning, by_ensemble, by_reproduction)


@pytest.mark.parametrize("door", DOORS)
def test_a_device_that_does_not_exist_is_refused(door: Callable[[str, Path], None], tmp_path: Path) -> None:
    with pytest.raises(plap.InputError, match=SENTENCE):
        door("tpu", tmp_path)


@pytest.mark.parametrize("door", DOORS[:-1])
def test_the_device_arrives(
    door: Callable[[str, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the one place where inputs go to a device."""
    seen: list[torch.device] = []

    class ArrivedError(Exception):
        """Nothing needs to be trained."""

    def make_inputs(*_: Any, device: torch.device, **__: Any) -> None:
        seen.append(device)
        raise ArrivedError

    monkeypatch.setattr(
        loop, "choose_device", lambda device: torch.device("meta") if device == "cuda" else None
    )
    monkeypatch.setattr(loop, "make_inputs", make_inputs)
    with pytest.raises(ArrivedError):
        door("cuda", tmp_path)
    assert seen == [torch.device("meta")]


def test_the_commands_refuse_it_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ("fit", "csbm:phi=0.5,n=100,f=20", "-o", tmp_path / "out")
    reproduce = ("reproduce", "heterophilic", "--quick", "--out", tmp_path / "table")
    for command in (fit, reproduce):
        assert run(monkeypatch, *command, "--device", "tpu") == 2
        said = capsys.readouterr().err
        assert "not 'tpu'" in said
        assert "Traceback" not in said
