"""What a user's own dataset holds, so that results of changed files are not taken for those of the old."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from plap.errors import InputError


def is_path(dataset: str) -> bool:
    """Whether a dataset is a file or folder; a bare name is a benchmark's, even where a folder is called so.

    Examples
    --------
    >>> is_path("texas"), is_path("csbm:phi=0.5"), is_path("./texas:r=0.5")
    (False, False, True)
    """
    return os.sep in dataset or "/" in dataset


def bare_name(dataset: str) -> str:
    """A dataset's name without the folders before it.

    Examples
    --------
    >>> bare_name("own/ours:r=0.5")
    'ours:r=0.5'
    """
    return dataset.replace(os.sep, "/").rpartition("/")[2]


def files_digest(dataset: str) -> str:
    """SHA-256 over the files of a dataset that is a path; empty for a benchmark, which never changes.

    Examples
    --------
    >>> files_digest("texas")
    ''
    """
    path = Path(dataset)
    if not path.exists() and "=" in dataset.rpartition(":")[2]:
        path = Path(dataset.rpartition(":")[0])
    if not is_path(dataset) or not path.exists():
        return ""
    files = [path] if path.is_file() else sorted(entry for entry in path.rglob("*") if entry.is_file())
    sha = hashlib.sha256()
    for file in files:
        sha.update(f"{file.relative_to(path.parent)}\0".encode())
        try:
            with file.open("rb") as stream:
                sha.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror})") from None
    return sha.hexdigest()
