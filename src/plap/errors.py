"""The exceptions that mean "the input is at fault, not plap"."""

from __future__ import annotations


class InputError(ValueError):
    """A mistake in the caller's input, described in one sentence that names what is wrong and where.

    It is a ``ValueError`` for those who call plap from Python; the command line prints the sentence and
    exits with code 2. Any other exception is a bug in plap and keeps its traceback.
    """


class MemoryBudgetError(InputError):
    """A memory budget, or the memory of a device, in which something cannot be computed at all."""
