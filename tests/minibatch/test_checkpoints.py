"""A training that ended in mid-course goes on as if nothing had happened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import training_worker as worker
from plap.errors import InputError
from plap.minibatch import Checkpoint, train_in_pieces
from plap.training import Progress, RunConfig


class PowerCutError(Exception):
    """What ends a training before its time."""


def stop_at(epoch: int) -> object:
    def report(state: Progress) -> None:
        if state.epoch == epoch:
            raise PowerCutError

    return report


def interrupted(path: Path, config: RunConfig = worker.CONFIG) -> None:
    """Leaves the checkpoint of epoch 4 behind."""
    with pytest.raises(PowerCutError):
        train_in_pieces(worker.pieces(), config, checkpoint=Checkpoint(path, 2), progress=stop_at(5))  # type: ignore[arg-type]


def test_resumed_training_is_the_same_to_the_last_bit(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    whole = train_in_pieces(worker.pieces(), worker.CONFIG)
    interrupted(path)
    seen: list[Progress] = []
    resumed = train_in_pieces(
        worker.pieces(), worker.CONFIG, checkpoint=Checkpoint(path, 2), progress=seen.append
    )
    assert [state.epoch for state in seen] == [5, 6, 7, 8]
    for name in ("train_loss", "val_loss", "val_score"):
        assert torch.equal(getattr(whole.history, name), getattr(resumed.history, name))
    assert whole.best_epoch == resumed.best_epoch
    for name, value in whole.state.items():
        assert torch.equal(value, resumed.state[name])
    assert [entry.name for entry in path.parent.iterdir()] == ["run"]

    seen.clear()
    again = train_in_pieces(worker.pieces(), worker.CONFIG, checkpoint=Checkpoint(path), progress=seen.append)
    assert not seen  # it was through
    assert torch.equal(again.logits, whole.logits)


def test_without_resuming_a_checkpoint_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_text("something else")
    short = replace(worker.CONFIG, max_epochs=2)
    assert train_in_pieces(worker.pieces(), short, checkpoint=Checkpoint(path, resume=False)).epochs == 2
    assert train_in_pieces(worker.pieces(), short, checkpoint=Checkpoint(path)).epochs == 2


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    interrupted(path)
    with pytest.raises(InputError, match="belongs to other data, another split or other settings"):
        train_in_pieces(worker.pieces(), replace(worker.CONFIG, mu=0.2), checkpoint=Checkpoint(path))


@pytest.mark.parametrize("harm", ["cut short", "a bit turned", "not ours", "empty"])
def test_a_damaged_checkpoint_is_refused(harm: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    interrupted(path)
    content = path.read_bytes()
    harmed = {
        "cut short": content[:-50],
        "a bit turned": content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
        "not ours": b"{}" * 40,
        "empty": b"",
    }
    path.write_bytes(harmed[harm])
    with pytest.raises(InputError, match=r"the checkpoint .*run cannot be used: it is damaged"):
        train_in_pieces(worker.pieces(), worker.CONFIG, checkpoint=Checkpoint(path))


def test_a_place_that_takes_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"the checkpoint .*file/run cannot be written"):
        train_in_pieces(
            worker.pieces(), worker.CONFIG, checkpoint=Checkpoint(tmp_path / "file" / "run", 1, resume=False)
        )
    with pytest.raises(InputError, match="every 1 or more epochs"):
        Checkpoint(tmp_path, every=0)
