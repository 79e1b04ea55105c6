from __future__ import annotations

import errno
import multiprocessing
import os
import random
import signal
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifact_samples import number_in, result, write_and_die, write_forever
from plap.errors import InputError
from plap.fitting.artifacts import check_writable, estimate_size, folder, load_model, write_result
from plap.fitting.artifacts.folder import OWN_FILES

KILLS = 20


def left_beside(out: Path) -> list[str]:
    return [path.name for path in out.parent.iterdir() if path != out]


def test_holds_exactly_its_files(tmp_path: Path) -> None:
    out = write_result(tmp_path / "deep" / "er" / "out", result(3))
    assert sorted(path.name for path in out.iterdir()) == sorted(OWN_FILES)
    assert number_in(out) == 3
    assert left_beside(out) == []


def test_replaces_an_earlier_result_and_keeps_its_permissions(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", result(1))
    out.chmod(0o750)
    write_result(out, result(2))
    assert number_in(out) == 2
    assert stat.S_IMODE(out.stat().st_mode) == 0o750
    assert left_beside(out) == []


def test_writes_through_a_symbolic_link(tmp_path: Path) -> None:
    real = write_result(tmp_path / "real", result(1))
    link = tmp_path / "link"
    link.symlink_to(real)
    write_result(link, result(2))
    assert link.is_symlink()
    assert number_in(real) == 2


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    check_writable(tmp_path / "out")
    assert number_in(write_result(tmp_path / "out", result(1))) == 1


@pytest.mark.parametrize("act", [check_writable, lambda out: write_result(out, result())])
def test_never_destroys_what_is_not_its_own(tmp_path: Path, act: Callable[[Path], Any]) -> None:
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter1.tex").write_text("years of work")
    with pytest.raises(InputError, match="holds no result of plap"):
        act(thesis)
    (thesis / "manifest.json").write_text('{"name": "an app"}')
    with pytest.raises(InputError, match="not written by this version of plap"):
        act(thesis)
    assert (thesis / "chapter1.tex").read_text() == "years of work"
    out = write_result(tmp_path / "out", result(1))
    (out / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt is not plap's"):
        act(out)
    assert (out / "notes.txt").read_text() == "mine"
    assert sorted(left_beside(out)) == ["thesis"]


def test_refuses_a_file_a_mount_and_a_file_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file, not a folder"):
        check_writable(tmp_path / "file", flag="-o")
    with pytest.raises(InputError, match=r"file is a file"):
        check_writable(tmp_path / "file" / "out")
    with pytest.raises(InputError, match="mount point"):
        check_writable("/")


def test_checking_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b" / "out", size=10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_read_only_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(self: Path, *_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(InputError, match=f"--out: .*out cannot be written.*{os.strerror(code)}"):
        check_writable(tmp_path / "out")


def test_read_only_place_for_real() -> None:
    with pytest.raises(InputError, match="cannot be written"):
        check_writable("/proc/plap-out")


def test_too_little_space_is_refused_before_the_work(tmp_path: Path) -> None:
    check_writable(tmp_path / "out", size=estimate_size(1000, 7, 10_000))
    with pytest.raises(InputError, match=r"needs about \d+\.?\d* TiB, and the disk has"):
        check_writable(tmp_path / "out", size=10**15)


def test_the_estimate_is_no_less_than_the_truth(tmp_path: Path) -> None:
    sample = result(1)
    out = write_result(tmp_path / "out", sample)
    assert sum(path.stat().st_size for path in out.iterdir()) <= estimate_size(300, 3, 2 * 96)


@pytest.mark.parametrize("after", range(len(OWN_FILES)))
def test_a_disk_that_fills_up_leaves_the_old_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    out = write_result(tmp_path / "out", result(1))
    write, count = folder._write, iter(range(100))

    def until_full(path: Path, content: Any) -> None:
        if next(count) == after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, content)

    monkeypatch.setattr(folder, "_write", until_full)
    with pytest.raises(InputError, match="No space left"):
        write_result(out, result(2))
    assert number_in(out) == 1
    assert left_beside(out) == []


def test_a_file_that_comes_while_the_result_is_written_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = write_result(tmp_path / "out", result(1))
    fill = folder._fill

    def slowly(new: Path, files: Any) -> None:
        fill(new, files)
        (out / "notes.txt").write_text("mine")

    monkeypatch.setattr(folder, "_fill", slowly)
    write_result(out, result(2))
    monkeypatch.undo()
    assert number_in(out) == 2
    write_result(out, result(3))
    (kept,) = tmp_path.glob(".out.*/*")
    assert kept.read_text() == "mine"


def test_what_crashed_writers_left_goes_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    dead, strange = tmp_path / f".out.plap-new-{'0' * 16}", tmp_path / ".out.plap-new-x"
    for path in (dead, strange):
        path.mkdir()
        (path / "model.json").touch()
    write_result(out, result(1))
    assert left_beside(out) == [strange.name]


def test_writers_take_turns(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with folder._turn(tmp_path) as locked:
        if not locked:
            pytest.skip("folders cannot be locked here")
        writing = tmp_path / f".out.plap-new-{'0' * 16}"  # of the writer whose turn it is
        writing.mkdir()
        other = threading.Thread(target=write_result, args=(out, result(1)))
        other.start()
        other.join(0.2)
        assert writing.exists()
        assert not out.exists()
    other.join()
    assert number_in(out) == 1


@pytest.mark.parametrize("act", [check_writable, lambda out: write_result(out, result(2))])
def test_where_folders_cannot_be_locked_all_works_but_leftovers_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], Any]
) -> None:
    monkeypatch.setattr(folder, "fcntl", None)
    out = write_result(tmp_path / "out", result(2))
    left = tmp_path / f".out.plap-new-{'0' * 16}"
    left.mkdir()
    act(out)
    assert number_in(out) == 2
    assert left_beside(out) == [left.name]


@pytest.fixture(scope="module")
def server() -> Any:
    """Processes that start in milliseconds, because what they import is imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["plap.fitting.artifacts", "polars", "safetensors.torch"])
    return context


@pytest.mark.parametrize(
    ("renames", "expected"), [pytest.param(k, number, id=str(k)) for k, number in ((0, 1), (1, 2), (2, 2))]
)
@pytest.mark.parametrize("read_first", [True, False])
def test_killed_between_two_renames_it_leaves_a_whole_result(
    tmp_path: Path, server: Any, renames: int, expected: int, read_first: bool
) -> None:
    out = write_result(tmp_path / "out", result(1))
    writer = server.Process(target=write_and_die, args=(str(out), renames))
    writer.start()
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
    if read_first:
        assert number_in(out) == expected
    write_result(out, result(3))
    assert number_in(out) == 3
    assert left_beside(out) == []


@pytest.mark.parametrize("renames", [0, 1])
def test_killed_when_nothing_was_there_it_leaves_a_whole_result(
    tmp_path: Path, server: Any, renames: int
) -> None:
    writer = server.Process(target=write_and_die, args=(str(tmp_path / "out"), renames))
    writer.start()
    writer.join()
    assert number_in(tmp_path / "out") == 2


def test_killed_at_any_moment_it_leaves_a_whole_result(tmp_path: Path, server: Any) -> None:
    out = write_result(tmp_path / "out", result(1))
    moments = random.Random(0)
    for _ in range(KILLS):
        ours, theirs = server.Pipe(duplex=False)
        writer = server.Process(target=write_forever, args=(str(out), theirs))
        writer.start()
        assert ours.recv() == 1  # the first is written
        time.sleep(moments.uniform(0, 0.05))
        writer.kill()
        writer.join()
        assert number_in(out) >= 1
    write_result(out, result(901))
    assert number_in(out) == 901
    assert left_beside(out) == []


def test_readers_and_writers_at_once(tmp_path: Path, server: Any) -> None:
    out = write_result(tmp_path / "out", result(1))
    writers = [server.Process(target=write_forever, args=(str(out),)) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        numbers: set[int] = set()
        while len(numbers) < 40:
            read = load_model(out)
            numbers.add(read.config["number"])
            assert float(read.states[0]["lin.weight"].mean()) == read.config["number"]
            assert all(writer.is_alive() for writer in writers)
    finally:
        for writer in writers:
            writer.kill()
            writer.join()
