"""What PyTorch's operations make while they are watched: on which devices, how large, how much at a time."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

READS_BACK = {"_local_scalar_dense", "is_nonzero", "equal", "nonzero", "unique", "masked_select"}
"""Operations that make the host wait for a device."""


class Allocations(TorchDispatchMode):
    """Watch every operation inside the ``with`` block; tensors ``known`` before do not count."""

    def __init__(self, *known: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: set[str] = set()
        self.devices: set[str] = set()
        self.largest = 0
        """Numbers in the largest result."""
        self.peak = 0
        """The most bytes that existed at a time."""
        self._known = [StorageWeakRef(tensor.untyped_storage()) for tensor in known]
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations.add(func._schema.name.split("::")[1])
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._record(tensor)
        self._alive = {key: kept for key, kept in self._alive.items() if not kept[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self._alive.values()))
        return result

    def _record(self, tensor: Tensor) -> None:
        self.devices.add(tensor.device.type)
        self.largest = max(self.largest, tensor.numel())
        reference = StorageWeakRef(tensor.untyped_storage())
        if all(reference.cdata != known.cdata for known in self._known):
            self._alive[reference.cdata] = (reference, tensor.untyped_storage().nbytes())
