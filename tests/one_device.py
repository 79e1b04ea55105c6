"""The meta device as a stand-in for a GPU: it has shapes and no numbers, so whatever reads one fails."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")


class OneDevice(TorchDispatchMode):
    """Refuses operations whose tensors are on several devices, but for copies to the second device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        found = {value.device.type for value in tensors if value.ndim}
        result = func(*args, **(kwargs or {}))
        after = {value.device.type for value in tree_leaves(result) if isinstance(value, Tensor)}
        name = func.overloadpacket.__name__
        assert len(found) < 2 or name == "copy_", f"{name} of {found}"
        assert not (META.type in found and "cpu" in after), f"{name} brings numbers to the host"
        return result
