"""Whose checkpoints are gone on from, and whose are removed, as torchrun's environment says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch

from plap.data import csbm, split
from plap.errors import InputError
from plap.fitting import FitResult, FitSettings, PieceSettings, fit
from plap.fitting.pieces import remove_checkpoints
from plap.training import Progress
from plap.training.pieces import Ranks, join_ranks
from torchrun import free_port, outputs_of

DATA = csbm(phi=0.5, n=60, f=8, seed=2)
SPLIT = split(DATA)
EPOCHS = 6
ALONE = Ranks(torch.device("cpu"))


class PowerCutError(Exception):
    """What ends a training before its time."""


@pytest.fixture(autouse=True)
def no_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)


def settings(fixed: dict[str, Any], **how: Any) -> FitSettings:
    return FitSettings(
        fixed={"p": 1.5, "K": 1, **fixed}, search=False, seeds=1, hidden=4, max_epochs=EPOCHS, rivals=(),
        pieces=PieceSettings(**{"parts": 3, "pieces_per_step": 2, "checkpoint_every": 1} | how),
    )  # fmt: skip


def train(
    folder: Path, *, report: Callable[[Progress], None], fixed: dict[str, Any] | None = None,
    ranks: Ranks = ALONE, **how: Any,
) -> FitResult:  # fmt: skip
    return fit(
        DATA, SPLIT, settings=settings(fixed or {}, **how), ranks=ranks, checkpoints=folder,
        announce=lambda _: report,
    )  # fmt: skip


def cut_short(folder: Path, **options: Any) -> None:
    """Leaves the checkpoint of epoch 3 behind."""

    def report(state: Progress) -> None:
        if state.epoch == 3:
            raise PowerCutError

    with pytest.raises(PowerCutError):
        train(folder, report=report, **options)


def epochs_of(folder: Path, **options: Any) -> list[int]:
    """The epochs that a training which comes to its end goes through."""
    seen: list[int] = []
    train(folder, report=lambda state: seen.append(state.epoch), **options)
    return seen


FROM_THE_START = list(range(1, EPOCHS + 1))
WENT_ON = [4, 5, 6]


@pytest.mark.parametrize(
    ("first", "second", "restarts", "epochs"),
    [
        ("job-7", "job-7", "0", WENT_ON),  # a machine that came later counts from 0
        ("job-7", "job-7", "1", WENT_ON),
        ("job-6", "job-7", "0", FROM_THE_START),
        ("job-6", "job-7", "1", FROM_THE_START),  # its first start ended before it removed what was there
        ("none", "none", "1", WENT_ON),
        ("none", "none", "0", FROM_THE_START),
        ("job-6", "none", "1", FROM_THE_START),
        (None, None, "1", WENT_ON),  # another launcher that counts as torchrun does
        (None, None, "0", FROM_THE_START),
        (None, "job-7", "0", FROM_THE_START),
    ],
)
def test_a_training_goes_on_from_its_own_checkpoints_alone(
    first: str | None, second: str | None, restarts: str, epochs: list[int], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = tmp_path / "checkpoints"
    for run_id, count, step in ((first, "0", cut_short), (second, restarts, epochs_of)):
        monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
        if run_id is not None:
            monkeypatch.setenv("TORCHELASTIC_RUN_ID", run_id)
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
        seen = step(folder)
    assert seen == epochs


def test_checkpoints_without_a_marker_are_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other settings would be refused if they were read."""
    cut_short(tmp_path / "checkpoints")
    (tmp_path / "checkpoints" / "run-id").unlink()
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert epochs_of(tmp_path / "checkpoints", fixed={"mu": 0.3}) == FROM_THE_START


def test_a_training_anew_leaves_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run_id in ("job-6", "job-7"):
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", run_id)
        cut_short(tmp_path / "checkpoints", fixed={"mu": 0.3} if run_id == "job-6" else {})
    assert (tmp_path / "checkpoints" / "run-id").read_text() == "job-7"
    assert epochs_of(tmp_path / "checkpoints") == WENT_ON


def test_whoever_asks_goes_on_from_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(tmp_path / "checkpoints")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-7")
    assert epochs_of(tmp_path / "checkpoints", resume=True) == WENT_ON


def test_machines_that_counted_differently_go_on_together(tmp_path: Path) -> None:
    whole = train(tmp_path / "other", report=lambda _: None)
    cut_short(tmp_path / "checkpoints")
    common = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    common |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen(
            [sys.executable, __file__, str(tmp_path / "checkpoints")],
            env=common | {"RANK": rank, "TORCHELASTIC_RESTART_COUNT": rank}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in ("0", "1")
    ]  # fmt: skip
    for said in map(json.loads, outputs_of(started)):
        assert said["epochs"] == WENT_ON
        ours = torch.tensor(said["probabilities"])
        torch.testing.assert_close(ours, whole.model.probabilities, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("wrong", [{"evaluation": "some"}, {"fixed": {"p": 0.5}}, {"parts_per_batch": 0}])
def test_what_is_refused_costs_no_checkpoint(wrong: dict[str, Any], tmp_path: Path) -> None:
    cut_short(tmp_path / "checkpoints")
    with pytest.raises(InputError):
        epochs_of(tmp_path / "checkpoints", **wrong)
    assert epochs_of(tmp_path / "checkpoints", resume=True) == WENT_ON


def test_what_a_killed_writer_left_is_removed_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    cut_short(folder)
    for name in (".pgnn-0.checkpoint.4711.0a1b2c3d.part", ".run-id.4711.0a1b2c3d.part"):
        (folder / name).write_bytes(b"half")
    (folder / "notes.part").write_text("mine")
    remove_checkpoints(folder)
    assert [path.name for path in folder.iterdir()] == ["notes.part"]
    (folder / "notes.part").unlink()
    remove_checkpoints(folder)
    assert not folder.exists()
    remove_checkpoints(folder)


def main(folder: Path) -> None:
    """What each of several processes does."""
    seen: list[int] = []
    with join_ranks("cpu", timedelta(minutes=10)) as ranks:
        found = train(folder, report=lambda state: seen.append(state.epoch), ranks=ranks)
    print(json.dumps({"epochs": seen, "probabilities": found.model.probabilities.tolist()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
