"""Raw files: where they are looked for, how they are fetched, and whether they are the published ones."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO
from urllib.request import urlopen

import platformdirs

from plap.data.benchmarks.benchmark import Benchmark, RawFile
from plap.errors import InputError

_CHUNK = 1 << 20
_TIMEOUT = 30.0


def user_cache() -> Path:
    """Where this system keeps what can be fetched or computed again, on Linux ``~/.cache/plap``."""
    return platformdirs.user_cache_path("plap")


def search_folders(root: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """Data folders in the order they are searched: ``root``, ``$PLAP_DATA``, the user's cache."""
    given = [root, os.environ.get("PLAP_DATA") or None]
    return (*(Path(folder).expanduser() for folder in given if folder is not None), user_cache())


def missing(benchmark: Benchmark, folder: Path) -> tuple[RawFile, ...]:
    """Files of ``benchmark`` that ``folder`` does not hold."""
    return tuple(file for file in benchmark.files if not (folder / file.path).is_file())


def holding_folder(benchmark: Benchmark, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the first data folder that holds every file of ``benchmark``, None if none does."""
    complete = (folder for folder in search_folders(root) if not missing(benchmark, folder))
    return next(complete, None)


def locate(benchmark: Benchmark, root: str | os.PathLike[str] | None = None) -> Path:
    """Return the first data folder that holds every file of ``benchmark``.

    If none does and the place to put them is the user's cache, they are fetched; a given ``root`` or
    ``$PLAP_DATA`` is never written to.
    """
    folder = holding_folder(benchmark, root)
    if folder is not None:
        return folder
    folders = search_folders(root)
    if len(folders) == 1 and all(file.url for file in benchmark.files):
        _fetch(benchmark, folders[0])
        return folders[0]
    raise InputError(missing_sentence(benchmark, root))


def missing_sentence(benchmark: Benchmark, root: str | os.PathLike[str] | None = None) -> str:
    """Say which file is missing, where it was looked for and where it would go."""
    folders = search_folders(root)
    absent = missing(benchmark, folders[0])
    more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    looked = ", ".join(str(folder) for folder in folders)
    origin = benchmark.archive or (absent[0].url or benchmark.source)
    return (
        f"{benchmark.name}: the file {absent[0].path}{more} is in none of the data folders ({looked}); "
        f"it would go to {folders[0] / absent[0].path} and comes from {origin}"
    )


def verify(file: RawFile, folder: Path) -> str:
    """Return the SHA-256 of ``file`` in ``folder``; refuse a file that is not the published one."""
    return _checked_copy(file, folder, None)


def stage(benchmark: Benchmark, folder: Path, destination: Path) -> dict[str, str]:
    """Copy the files to ``destination`` and return their SHA-256 by path.

    The sum is taken of the very bytes that are copied, so what was verified is what will be read, and
    the data folder itself is only ever read.
    """
    sums = {}
    for file in benchmark.files:
        if benchmark.pickled and file.sha256 is None:
            raise InputError(f"{folder / file.path} is a pickle without a known SHA-256: it is not read")
        target = destination / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as stream:
            sums[file.path] = _checked_copy(file, folder, stream)
    return sums


def _checked_copy(file: RawFile, folder: Path, target: BinaryIO | None) -> str:
    path = folder / file.path
    sha = hashlib.sha256()
    try:
        with path.open("rb") as source:
            while chunk := source.read(_CHUNK):
                sha.update(chunk)
                if target is not None:
                    target.write(chunk)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    found = sha.hexdigest()
    if file.sha256 is not None and found != file.sha256:
        raise InputError(
            f"{path} is not the published file and is not read: its SHA-256 is {found}, not {file.sha256}"
        )
    return found


def _fetch(benchmark: Benchmark, folder: Path) -> None:
    for file in missing(benchmark, folder):
        path = folder / file.path
        try:
            with tempfile.TemporaryDirectory(prefix="plap-") as scratch:
                fetched = Path(scratch) / path.name
                _download(str(file.url), fetched)
                verify(RawFile(path.name, file.sha256), Path(scratch))
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_name(f"{path.name}.{os.getpid()}.part")
                shutil.copyfile(fetched, part)
                part.replace(path)
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise InputError(
                f"{benchmark.name}: {file.path} is missing and could not be fetched from {file.url} "
                f"({reason}); it would go to {path}"
            ) from error


def _download(url: str, path: Path) -> None:
    with urlopen(url, timeout=_TIMEOUT) as response, path.open("wb") as stream:
        while chunk := response.read(_CHUNK):
            stream.write(chunk)


@dataclass(frozen=True)
class Verification:
    """What became of checking one benchmark's files."""

    name: str
    folder: str | None
    """The data folder that holds all files; None if no folder does."""
    missing: tuple[str, ...]
    """Files that the first data folder lacks, if no folder holds all."""
    wrong: tuple[str, ...]
    """A sentence on every file that is not the published one or cannot be read."""
    sums: dict[str, str]
    """SHA-256 of every file that passed, by path."""
    unchecked: tuple[str, ...]
    """Files whose published sum plap does not know."""

    @property
    def status(self) -> str:
        """``missing``, ``wrong``, ``unchecked`` or ``ok``."""
        if self.folder is None:
            return "missing"
        if self.wrong:
            return "wrong"
        return "unchecked" if self.unchecked else "ok"


def verify_benchmark(benchmark: Benchmark, root: str | os.PathLike[str] | None = None) -> Verification:
    """Check every file of ``benchmark`` against the SHA-256 of the published one."""
    folder = holding_folder(benchmark, root)
    if folder is None:
        absent = missing(benchmark, search_folders(root)[0])
        return Verification(benchmark.name, None, tuple(file.path for file in absent), (), {}, ())
    wrong, sums = [], {}
    for file in benchmark.files:
        try:
            sums[file.path] = verify(file, folder)
        except InputError as error:
            wrong.append(str(error))
    unchecked = tuple(file.path for file in benchmark.files if file.sha256 is None)
    return Verification(benchmark.name, str(folder), (), tuple(wrong), sums, unchecked)
