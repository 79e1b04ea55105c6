"""A folder of results that is replaced as a whole: after a crash at any moment it is the old one or the new.

The files are written into a new folder beside ``out``, and last of all ``manifest.json``, which holds their
digests. Then ``out`` is renamed to a second name beside it, the new folder is renamed to ``out``, and the old
one is removed. A crash between the two renames leaves no ``out`` but two complete folders beside it: the next
reader puts the new one in place. Readers check what they read against the manifest, so they never see a
mixture of two results. Writers take turns.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from plap.errors import InputError
from plap.memory import readable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Content = bytes | Callable[[IO[bytes]], None]
"""A file's bytes, or what writes them."""

MANIFEST = "manifest.json"
OWN_FILES = (
    MANIFEST,
    "predictions.csv",
    "predictions.parquet",
    "model.safetensors",
    "model.json",
    "metrics.json",
    "report.html",
)
_FORMAT = "plap-result/1"
_ATTEMPTS = 20


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
    ancestor = next((folder for folder in out.parents if folder.exists()), out)
    if not ancestor.is_dir():
        raise InputError(f"{flag}: {out} cannot be written, {ancestor} is a file")
    with _turn(ancestor):
        _check_replaceable(out, flag)
    probe = _sibling(ancestor / out.name, "new")
    try:
        probe.mkdir()
        probe.rmdir()
        free = shutil.disk_usage(ancestor).free
    except OSError as error:
        raise InputError(
            f"{flag}: {out} cannot be written: cannot create a folder in {ancestor} ({error.strerror})"
        ) from None
    if free < size:
        raise InputError(
            f"{flag}: {out} needs about {readable(size)}, and the disk has {readable(free)} left"
        )


def replace_folder(out: Path | str, files: Mapping[str, Content], *, flag: str = "--out") -> Path:
    """Make ``out`` hold exactly these files, each one of :data:`OWN_FILES`; returns its real path."""
    out = _real(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _turn(out.parent) as alone:
            _check_replaceable(out, flag)
            _remove_leftovers(out, alone=alone)
            new, old = _sibling(out, "new"), _sibling(out, "old")
            new.mkdir()
            try:
                _fill(new, files)
                if out.exists():
                    new.chmod(out.stat().st_mode & 0o7777)
                    out.rename(old)
                new.rename(out)
            finally:
                _discard(new)
            _flush(out.parent)
            _discard(old)
            _remove_leftovers(out, alone=alone)
    except OSError as error:
        raise InputError(f"{flag}: {out} cannot be written ({error.strerror})") from None
    return out


def replace_file(out: Path | str, name: str, content: bytes, *, flag: str = "--out") -> Path:
    """Replace one file of a result; the others are checked and stay as they are."""
    try:
        names = tuple(_read_manifest(Path(out)))
    except OSError as error:
        raise InputError(f"{flag}: {out} cannot be read ({error.strerror})") from None
    files = dict(zip(names, read_files(out, names), strict=True))
    return replace_folder(out, {**files, name: content}, flag=flag)


def read_files(folder: Path | str, names: Sequence[str]) -> list[bytes]:
    """Files of one and the same result, as they were written, also while another process replaces it."""
    folder = Path(folder)
    problem = f"{folder} was replaced again and again while it was read"
    for _ in range(_ATTEMPTS):
        try:
            manifest = _read_manifest(folder)
            contents = {name: (folder / name).read_bytes() for name in names}
            digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
            wrong = [name for name in names if digests[name] != manifest.get(name)]
            if not wrong:
                return list(contents.values())
            if _read_manifest(folder) == manifest:
                raise InputError(
                    f"{folder / wrong[0]} cannot be read: it is damaged or was changed after plap wrote it"
                )
        except FileNotFoundError as error:
            problem = f"{error.filename} is missing: {folder} holds no result of plap"
            _recover(_real(folder))
        except NotADirectoryError:
            raise InputError(f"{folder} is not a folder") from None
        except OSError as error:
            raise InputError(f"{error.filename or folder} cannot be read ({error.strerror})") from None
    raise InputError(problem if folder.exists() else f"{folder} does not exist")


def _recover(out: Path) -> None:
    """Put in place a complete result that a crash left beside ``out``, if ``out`` is not there."""
    with contextlib.suppress(OSError):
        if out.exists() or not _siblings(out):
            return
        with _turn(out.parent):
            complete = [folder for folder in _siblings(out) if (folder / MANIFEST).is_file()]
            if complete and not out.exists():
                complete[0].rename(out)


def _remove_leftovers(out: Path, *, alone: bool) -> None:
    """Remove what crashed writers left; a complete result only if there is another in its place."""
    for folder in _siblings(out) if alone else ():
        if out.exists() or not (folder / MANIFEST).is_file():
            _discard(folder)


def _read_manifest(folder: Path) -> dict[str, str]:
    """The digest of every file of a result, by its name."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise InputError(
            f"{folder / MANIFEST} cannot be read: it is damaged or was not written by this version of plap"
        )
    files: dict[str, str] = manifest["files"]
    return files


def _real(out: Path | str) -> Path:
    """The folder itself: a symbolic link stays, what it points to is replaced."""
    return Path(os.path.realpath(out))


def _sibling(out: Path, kind: str) -> Path:
    return out.parent / f".{out.name}.plap-{kind}-{secrets.token_hex(8)}"


def _siblings(out: Path) -> list[Path]:
    """The new and old folders beside ``out``, new ones first."""
    pattern = re.compile(rf"\.{re.escape(out.name)}\.plap-(new|old)-[0-9a-f]{{16}}")
    return sorted(folder for folder in out.parent.iterdir() if pattern.fullmatch(folder.name))


def _check_replaceable(out: Path, flag: str) -> None:
    """Refuse to replace anything that plap did not write."""
    if out.name == "" or os.path.ismount(out):
        raise InputError(f"{flag}: {out} is a mount point and cannot be replaced; name a folder inside it")
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{flag}: {out} is a file, not a folder")
    try:
        names = sorted(entry.name for entry in out.iterdir())
        if names and MANIFEST not in names:
            raise InputError(f"{flag}: {out} is not empty and holds no result of plap; name another folder")
        if names:
            _read_manifest(out)
    except OSError as error:
        raise InputError(f"{flag}: {out} cannot be read ({error.strerror})") from None
    if foreign := [name for name in names if name not in OWN_FILES]:
        raise InputError(
            f"{flag}: {out / foreign[0]} is not plap's and would be lost; move it or name another folder"
        )


@contextlib.contextmanager
def _turn(parent: Path) -> Iterator[bool]:
    """Wait until no other process writes a folder in ``parent``; its unfinished folders are nobody's then.

    False where folders cannot be locked (Windows, some network file systems): nobody waits, and unfinished
    folders are left alone.
    """
    descriptor, locked = None, False
    try:
        with contextlib.suppress(OSError):
            if fcntl is not None:
                descriptor = os.open(parent, os.O_RDONLY)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                locked = True
        yield locked
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _fill(new: Path, files: Mapping[str, Content]) -> None:
    """Write the files, flush them to the disk, and write their digests last."""
    digests = {}
    for name, content in files.items():
        _write(new / name, content)
        with (new / name).open("rb") as stream:
            digests[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    _write(new / MANIFEST, json.dumps({"format": _FORMAT, "files": digests}, indent=1).encode() + b"\n")
    _flush(new)


def _discard(folder: Path) -> None:
    """Remove a folder of plap's own files, if it is there; should it hold anything else, that stays."""
    with contextlib.suppress(OSError):
        for name in OWN_FILES:  # the manifest first: what is half removed is not taken for a result
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


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
