"""Files that a command writes: refused before the work if they cannot be, whole or not at all after it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

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
    """Write beside ``path`` and rename, so that nobody ever sees half a file."""
    check_writable(path, flag)
    try:
        with tempfile.NamedTemporaryFile(dir=path.absolute().parent, delete=False) as stream:
            temporary = Path(stream.name)
            try:
                stream.write(content)
                stream.flush()
                temporary.chmod(0o666 & ~_umask())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InputError(f"{flag}: {path} cannot be written ({error.strerror})") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
