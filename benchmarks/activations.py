"""How much memory a training step keeps for its backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor


def activation_bytes(forward: Callable[[], Tensor], inputs: Iterable[Tensor] = ()) -> int:
    """Bytes that autograd keeps of a forward pass: the most that a step holds at a time, before its backward.

    Parameters
    ----------
    forward : function without arguments
        Gives something that can be differentiated.
    inputs : Tensors
        What is there anyway, such as features, the graph's arrays and parameters: not counted. Sparse
        matrices never are.

    Examples
    --------
    >>> x = torch.ones(1000, requires_grad=True)
    >>> activation_bytes(lambda: (2 * x).exp().sum(), [x])
    4000
    """
    there = {_place(value) for value in inputs if value.layout == torch.strided}
    kept: dict[int, int] = {}

    def pack(value: Tensor) -> Tensor:
        if value.layout == torch.strided and _place(value) not in there:
            kept[_place(value)] = value.untyped_storage().nbytes()
        return value

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
        result = forward()
    assert result.requires_grad
    return sum(kept.values())


def _place(value: Tensor) -> int:
    return value.untyped_storage().data_ptr()
