"""Nobody sees half a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from plap.atomic_file import write_atomic


def test_writes_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_atomic(path, b"first")
    write_atomic(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_has_the_rights_that_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    write_atomic(tmp_path / "whole", b"")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("failing", ["os.fsync", "pathlib.Path.replace"])
def test_a_failure_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "a.bin"
    write_atomic(path, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(failing, fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_needs_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "nowhere" / "a.bin", b"")
    assert not list(tmp_path.iterdir())
