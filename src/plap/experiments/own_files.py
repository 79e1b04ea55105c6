"""What a user's own dataset holds, so that results of changed files are not taken for those of the old."""

from __future__ import annotations

import hashlib
from pathlib import Path

from plap.data.dataset_name import DatasetName
from plap.errors import InputError


def files_digest(dataset: str) -> str:
    """SHA-256 over the files of a dataset that is a path; empty for a benchmark, which never changes.

    Examples
    --------
    >>> files_digest("texas")
    ''
    """
    name = DatasetName.parse(dataset)
    path = Path(dataset) if Path(dataset).exists() else Path(name.base)
    if not name.is_path or not path.exists():
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
