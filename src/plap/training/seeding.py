"""PyTorch's own generator, lent with a seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """What is drawn inside follows from ``seed``; afterwards the generator is as it was.

    Examples
    --------
    >>> with seeded(3):
    ...     first = torch.rand(4)
    >>> with seeded(3):
    ...     print(torch.equal(torch.rand(4), first))
    True
    """
    with torch.random.fork_rng(devices=[]):
        # not torch.manual_seed: where CUDA could come to be used, it keeps a stack trace of every call
        torch.default_generator.manual_seed(seed)
        yield
