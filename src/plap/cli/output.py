"""Files that a command writes: refused before the work if they cannot be, whole or not at all after it."""

from __future__ import annotations

import os
from pathlib import Path

from plap.atomic_file import write_atomic
from plap.errors import InputError


def check_writable(path: Path, flag: str) -> None:
    """Refuse a file that could not be written; ``flag`` is what the user named it with."""
    folder = path.absolute().parent
    if path.is_dir():
        raise InputError(f"{flag}: {path} is a folder, not a file")
    if not folder.is_dir():
        raise InputError(f"{flag}: {path} cannot be written, there is no folder {folder}")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"{flag}: {path} cannot be written, it is not permitted")


def write_atomically(path: Path, content: bytes, flag: str) -> None:
    """Write a file whole or not at all; ``flag`` is what the user named it with."""
    check_writable(path, flag)
    try:
        write_atomic(path, content)
    except OSError as error:
        raise InputError(f"{flag}: {path} cannot be written ({error.strerror})") from None
