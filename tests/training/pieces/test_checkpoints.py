"""A training that ended in mid-course goes on as if nothing had happened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import training_worker as worker
from plap.errors import InputError
from plap.training import Progress, RunConfig
from plap.training.pieces import Checkpoint, Ranks, train_in_pieces


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


def test_more_epochs_or_more_patience_go_on_from_where_training_ended(tmp_path: Path) -> None:
    """A path may be a string, and what comes after the end is what an uninterrupted training gives."""
    long = replace(worker.CONFIG, lr=0.05)
    for number, short in enumerate((replace(long, max_epochs=3), replace(long, patience=1))):
        path = str(tmp_path / f"run{number}")
        ended = train_in_pieces(worker.pieces(), short, checkpoint=Checkpoint(path))
        assert ended.epochs == 3
        resumed = train_in_pieces(worker.pieces(), long, checkpoint=Checkpoint(path))
        whole = train_in_pieces(worker.pieces(), long)
        assert torch.equal(resumed.history.train_loss, whole.history.train_loss)
        assert (resumed.epochs, resumed.best_epoch) == (whole.epochs, whole.best_epoch)


def test_a_training_that_ended_by_its_patience_stays_ended_with_more_epochs(tmp_path: Path) -> None:
    config = replace(worker.CONFIG, max_epochs=100, patience=2, lr=0.05)
    ended = train_in_pieces(worker.pieces(), config, checkpoint=Checkpoint(tmp_path / "run"))
    seen: list[Progress] = []
    more = replace(config, max_epochs=200)
    again = train_in_pieces(
        worker.pieces(), more, checkpoint=Checkpoint(tmp_path / "run"), progress=seen.append
    )
    assert not seen
    assert again.epochs == ended.epochs == ended.best_epoch + 2
    assert torch.equal(again.logits, ended.logits)


def test_a_training_that_would_have_ended_before_its_checkpoint_is_refused(tmp_path: Path) -> None:
    interrupted(tmp_path / "run")
    fewer = replace(worker.CONFIG, max_epochs=3)
    with pytest.raises(InputError, match="is of epoch 4, but with these settings training ends with epoch 3"):
        train_in_pieces(worker.pieces(), fewer, checkpoint=Checkpoint(tmp_path / "run"))


def test_the_first_process_decides_for_all_whether_to_go_on(tmp_path: Path) -> None:
    interrupted(tmp_path / "first")
    content = (tmp_path / "first").read_bytes()

    class Second(Ranks):
        def from_first(self, given: bytes | None) -> bytes | None:
            assert given is None
            return content

    seen: list[Progress] = []
    train_in_pieces(
        worker.pieces(), worker.CONFIG, ranks=Second(torch.device("cpu"), rank=1), evaluation="halos",
        checkpoint=Checkpoint(tmp_path / "second", resume=False), progress=seen.append,
    )  # fmt: skip
    assert seen[0].epoch == 5
    assert not (tmp_path / "second").exists()


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    interrupted(path)
    with pytest.raises(InputError, match="belongs to other data, another split or other settings"):
        train_in_pieces(worker.pieces(), worker.CONFIG.with_values(mu=0.2), checkpoint=Checkpoint(path))


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
    with pytest.raises(InputError, match="epochs between checkpoints must be an integer of 1 or more"):
        Checkpoint(tmp_path, every=0)
