"""Remember what was made of an object for as long as that very object lives unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

T = TypeVar("T")


class Memo(Generic[T]):
    """Results by the identity of their argument, forgotten with it.

    A tensor counts as another one once it was changed in place, so a result never goes stale.
    """

    def __init__(self) -> None:
        self._results: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """What ``make`` gave for this ``key`` the last time, or gives now."""
        version = key._version if isinstance(key, Tensor) else 0
        known = self._results.get(key)
        if known is None or known[0] != version:
            known = (version, make())
            self._results[key] = known
        result: T = known[1]
        return result
