"""What was made of an object, kept as long as the object lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

T = TypeVar("T")


class Memo(Generic[T]):
    """Results by the identity of their argument, forgotten with it.

    ``version`` says which state of its argument a result was made of, so that none goes stale; for a tensor
    that is PyTorch's own count of changes in place. Copies and pickles of a memo are empty.
    """

    def __init__(self) -> None:
        self._results: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._results = WeakIdKeyDictionary()

    def get(self, key: Any, make: Callable[[], T], version: object = None) -> T:
        """What ``make`` gave for this ``key`` in this ``version`` the last time, or gives now."""
        if isinstance(key, Tensor):
            if key.is_inference():  # PyTorch does not count changes of such a tensor
                return make()
            version = (key._version, version)
        known = self._results.get(key)
        if known is None or known[0] != version:
            with torch.inference_mode(False):  # it may be needed in training, too; dynamo knows no keyword
                known = (version, make())
            self._results[key] = known
        result: T = known[1]
        return result
