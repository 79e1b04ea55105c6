"""Which nodes' labels may be seen for what."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class SplitLike(Protocol):
    """Boolean masks [N], as in :class:`plap.data.Split`. A test mask may be present; nothing reads it."""

    @property
    def train(self) -> Tensor:
        """Nodes whose labels the loss may see."""
        ...

    @property
    def val(self) -> Tensor:
        """Nodes whose labels decide when to stop."""
        ...
