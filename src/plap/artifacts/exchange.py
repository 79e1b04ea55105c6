"""Two folders change places in one step, where the system can do that."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def exchange(first: Path, second: Path) -> bool:
    """Swap two paths atomically; False, with nothing done, where system or file system cannot.

    ``renameat2(RENAME_EXCHANGE)`` on Linux, ``renamex_np(RENAME_SWAP)`` on macOS.
    """
    library = _library()
    a, b = os.fsencode(first), os.fsencode(second)
    if library is not None and hasattr(library, "renameat2"):
        failed = library.renameat2(_AT_FDCWD, a, _AT_FDCWD, b, ctypes.c_uint(_RENAME_EXCHANGE))
    elif library is not None and hasattr(library, "renamex_np"):
        failed = library.renamex_np(a, b, ctypes.c_uint(_RENAME_SWAP))
    else:
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(second))


@cache
def _library() -> Any:
    return None if sys.platform == "win32" else ctypes.CDLL(None, use_errno=True)
