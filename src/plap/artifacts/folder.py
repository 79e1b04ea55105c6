"""A folder of results that is replaced as a whole: after a crash at any moment it is the old one or the new.

The new folder is written beside the old one under a name of its own, flushed to the disk, and the two change
places in one step. Where the system cannot swap, the old one is moved aside first; whoever comes next and
finds it aside with nothing in its place moves it back. What a crash left behind, the next writer removes.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from plap.artifacts.exchange import exchange
from plap.artifacts.model_file import read_header
from plap.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: leftovers are then kept for good rather than taken from a living writer
    fcntl = None  # type: ignore[assignment]

Content = bytes | Callable[[IO[bytes]], None]
"""A file's bytes, or what writes them."""

OWN_FILES = (
    "predictions.csv",
    "predictions.parquet",
    "model.safetensors",
    "model.json",
    "metrics.json",
    "report.html",
)
_ASIDE = "plap-old"
_ATTEMPTS = 20
_NEW = re.compile(r"plap-[0-9a-f]{16}")


def check_writable(out: Path | str, *, size: int = 0, flag: str = "--out") -> None:
    """Refuse, before any work, a folder that could not be written; leaves nothing behind.

    Parameters
    ----------
    out : path
        It may not exist yet, be empty, or hold an earlier result of plap and nothing else.
    size : int
        Bytes that the result will need.
    flag : str
        What the user named the folder with.
    """
    out = _real(out)
    recover(out)
    _check_replaceable(out, flag)
    ancestor = next(folder for folder in out.parents if folder.exists())
    if not ancestor.is_dir():
        raise InputError(f"{flag}: {out} cannot be written, {ancestor} is a file")
    probe = ancestor / f".{out.name}.plap-{secrets.token_hex(8)}"
    try:
        probe.mkdir()
        probe.rmdir()
        system = os.statvfs(ancestor) if hasattr(os, "statvfs") else None
    except OSError as error:
        raise InputError(
            f"{flag}: {out} cannot be written, {ancestor} takes no folder ({error.strerror})"
        ) from None
    if system is not None and system.f_bavail * system.f_frsize < size:
        free = system.f_bavail * system.f_frsize
        raise InputError(f"{flag}: {out} needs about {_bytes(size)}, and the disk has {_bytes(free)} left")


def replace_folder(out: Path | str, files: Mapping[str, Content], *, flag: str = "--out") -> Path:
    """Make ``out`` hold exactly these files, in one step; returns its real path."""
    out = _real(out)
    try:
        recover(out)
        _check_replaceable(out, flag)
        out.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(out)
        with _new_folder(out) as new:
            for name, content in files.items():
                _write(new / name, content)
            _flush(new)
            _check_replaceable(out, flag)
            _put_in_place(new, out)
        _flush(out.parent)
    except OSError as error:
        raise InputError(f"{flag}: {out} cannot be written ({error.strerror})") from None
    return out


def recover(out: Path) -> None:
    """Put back a result that a crash left aside, where swapping takes two steps."""
    aside = _sibling(out, _ASIDE)
    if not aside.is_dir() or out.exists():
        return
    lock = _lock(aside)
    if lock is not None or fcntl is None:  # else its writer lives and is about to put the new one in place
        with contextlib.suppress(OSError):
            aside.rename(out)
        _unlock(lock)


def _real(out: Path | str) -> Path:
    """The folder itself: a symbolic link stays, what it points to is replaced."""
    return Path(os.path.realpath(out))


def _sibling(out: Path, suffix: str) -> Path:
    return out.parent / f".{out.name}.{suffix}"


def _check_replaceable(out: Path, flag: str) -> None:
    """Refuse to replace anything that plap did not write."""
    if out.name == "" or os.path.ismount(out):
        raise InputError(f"{flag}: {out} is a mount point and cannot be replaced; name a folder inside it")
    for _ in range(_ATTEMPTS):
        if not out.exists():
            return
        with unchanged(out) as same:
            problem = _what_would_be_lost(out)
            if same():  # else another writer replaced the folder while it was looked at
                break
    if problem:
        raise InputError(f"{flag}: {problem}")


def _what_would_be_lost(out: Path) -> str:
    """Why a folder may not be replaced, or nothing."""
    if not out.is_dir():
        return f"{out} is a file, not a folder"
    try:
        names = sorted(entry.name for entry in out.iterdir())
        if names and "model.json" not in names:
            return f"{out} is not empty and holds no result of plap; name another folder"
        if names:
            read_header((out / "model.json").read_bytes(), out / "model.json")
    except OSError as error:
        return f"{out} cannot be read ({error.strerror})"
    except InputError as error:
        return str(error)
    foreign = [name for name in names if name not in OWN_FILES]
    if foreign:
        return f"{out / foreign[0]} is not plap's and would be lost; move it or name another folder"
    return ""


@contextlib.contextmanager
def unchanged(folder: Path) -> Iterator[Callable[[], bool]]:
    """Whether the path still leads to the folder that it led to at first, which is held meanwhile."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        yield folder.exists
        return
    try:
        yield lambda: folder.exists() and os.path.samestat(folder.stat(), os.fstat(descriptor))
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """A folder beside ``out``, locked while its writer lives, and removed unless it was put in place."""
    for more in (True, True, False):
        new = _sibling(out, f"plap-{secrets.token_hex(8)}")
        new.mkdir()
        lock = _lock(new)
        if (lock is not None and new.exists()) or not more:
            break
        _unlock(lock)  # another writer took it for a leftover, or nothing can be locked here
        with contextlib.suppress(OSError):
            new.rmdir()
    try:
        if out.is_dir():
            new.chmod(out.stat().st_mode & 0o7777)
        yield new
    finally:
        # after the swap this name holds the old result
        shutil.rmtree(new, ignore_errors=True)
        _unlock(lock)


def _put_in_place(new: Path, out: Path) -> None:
    if not out.exists():
        new.rename(out)
    elif not exchange(new, out):
        aside = _sibling(out, _ASIDE)
        shutil.rmtree(aside, ignore_errors=True)
        lock = _lock(out)
        try:
            out.rename(aside)
            new.rename(out)
        finally:
            _unlock(lock)
        shutil.rmtree(aside, ignore_errors=True)


def _remove_leftovers(out: Path) -> None:
    """Remove the unfinished folders of writers that no longer live, and an old result that was replaced."""
    prefix = f".{out.name}."
    for folder in out.parent.iterdir():
        suffix = folder.name.removeprefix(prefix)
        if not folder.name.startswith(prefix) or not folder.is_dir() or folder.is_symlink():
            continue
        if suffix == _ASIDE and out.exists():
            shutil.rmtree(folder, ignore_errors=True)
        elif _NEW.fullmatch(suffix) and (lock := _lock(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            _unlock(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder for this process; None if another one has it. The lock goes when the process does."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _unlock(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


def _write(path: Path, content: Content) -> None:
    with path.open("wb") as stream:
        if isinstance(content, bytes):
            stream.write(content)
        else:
            content(stream)
        stream.flush()
        os.fsync(stream.fileno())


def _flush(folder: Path) -> None:
    """Make renames in a folder durable; some systems cannot open one, and do it by themselves."""
    with contextlib.suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _bytes(size: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = size // 1000
    return f"{size} GB"
