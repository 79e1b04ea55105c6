"""The one exception that means "the input is at fault, not plap"."""


class InputError(ValueError):
    """A mistake in what the caller gave, said in one sentence that names what and where.

    It is a ``ValueError`` for those who call plap from Python; the command line prints the sentence and
    ends with exit code 2. Any other exception is a defect of plap and keeps its traceback.
    """
