"""What a launcher tells a process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from plap.errors import InputError
from plap.training.pieces import choose_device
from plap.training.pieces.distributed import local_rank, restart_count, world_size


@pytest.mark.parametrize(
    ("read", "name", "least"),
    [
        (world_size, "WORLD_SIZE", 1),
        (local_rank, "LOCAL_RANK", 0),
        (restart_count, "TORCHELASTIC_RESTART_COUNT", 0),
    ],
)
def test_a_number_that_is_none_is_refused(
    read: Callable[[], int], name: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name, raising=False)
    assert read() == least
    monkeypatch.setenv(name, "3")
    assert read() == 3
    for text in ("two", str(least - 1), ""):
        monkeypatch.setenv(name, text)
        with pytest.raises(InputError, match=f"{name} must be an integer of {least} or more, not {text!r}"):
            read()


def test_each_process_of_a_machine_has_a_device_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose_device("cuda") == torch.device("cuda:1")
    assert choose_device("cuda:0") == torch.device("cuda:0")
    monkeypatch.setenv("LOCAL_RANK", "first")
    with pytest.raises(InputError, match="LOCAL_RANK must be an integer of 0 or more, not 'first'"):
        choose_device("cuda")
