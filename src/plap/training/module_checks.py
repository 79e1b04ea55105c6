"""What a module must be to be trained, and must give."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from plap.errors import InputError
from plap.models import ModelKind


def check_trainable(kind: ModelKind[Any], module: torch.nn.Module, *, weighted: bool) -> None:
    """Refuse a module that has nothing to train, or knows no weights where the graph has some."""
    if any(is_lazy(value) for value in module.parameters()):
        raise InputError(f"model {kind.name!r} has a parameter without a shape: build it with in_channels")
    if not any(value.requires_grad for value in module.parameters()):
        raise InputError(f"model {kind.name!r} has no parameter to train")
    if weighted and kind.takes == "edge_index" and not _takes_weights(module):
        raise InputError(
            f"the graph is weighted, but the forward of model {kind.name!r} takes no edge_weight"
        )


def check_logits(kind: ModelKind[Any], logits: Any, shape: tuple[int, int]) -> Tensor:
    """The logits, if they are a tensor of this shape."""
    if not isinstance(logits, Tensor) or logits.shape != shape:
        got = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise InputError(f"model {kind.name!r} must give logits of shape {list(shape)}, not {got}")
    return logits


def _takes_weights(module: torch.nn.Module) -> bool:
    parameters = inspect.signature(module.forward).parameters.values()
    return any(each.name == "edge_weight" or each.kind is each.VAR_KEYWORD for each in parameters)
