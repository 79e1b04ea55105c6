"""The one exception that means "the input is at fault, not plap", and a hint for its sentences."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A mistake in the caller's input, described in one sentence that names what is wrong and where.

    It is a ``ValueError`` for those who call plap from Python; the command line prints the sentence and
    exits with code 2. Any other exception is a bug in plap and keeps its traceback.
    """


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """What to put behind a sentence about an unknown name: the nearest known one, or nothing.

    Examples
    --------
    >>> did_you_mean("gprgn", ["gcn", "gprgnn"])
    " (did you mean 'gprgnn'?)"
    """
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
