"""A run of any PyTorch module: what a stacked family does for many runs, for one, by calling the module."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from plap.models import ModelKind
from plap.models.stacked import StackedState, State
from plap.training.inputs import Inputs
from plap.training.masks import mask_keys
from plap.training.module_checks import check_logits, check_trainable
from plap.training.run_settings import RunSettings
from plap.training.seeding import seeded


class SingleModule:
    """A module and the arguments of its calls; its parameters and buffers are given with every call.

    Parameters
    ----------
    kind : ModelKind
    module : torch.nn.Module
        With its first weights; made the dtype of the inputs.
    inputs : Inputs
    num_classes : int
    """

    def __init__(
        self, kind: ModelKind[Any], module: torch.nn.Module, inputs: Inputs, num_classes: int
    ) -> None:
        weighted = inputs.graph.is_weighted
        check_trainable(kind, module, weighted=weighted)
        self._kind, self._module = kind, module.to(inputs.dtype)
        self._arguments, self._keywords = _arguments(kind, inputs, weighted)
        self._shape = (inputs.graph.num_nodes, num_classes)
        self._buffers = [name for name, value in module.named_buffers() if value.layout == torch.strided]

    def stack(self, modules: Sequence[torch.nn.Module], dtype: torch.dtype) -> StackedState:
        """What is optimised, and what else a call may change, each with an axis of one run."""
        parameters = ((name, value) for name, value in self._module.named_parameters() if value.requires_grad)
        buffers = ((name, self._module.get_buffer(name)) for name in self._buffers)
        return StackedState(_with_axis(parameters), _with_axis(buffers))

    def unstack(self, state: State, run: int) -> State:
        """What ``load_state_dict`` of the module takes; a tensor with two names (tied weights) twice."""
        first: dict[int, str] = {}
        result = {
            name: value for name, value in self._module.state_dict().items() if isinstance(value, Tensor)
        }
        named = itertools.chain(
            self._module.named_parameters(remove_duplicate=False),
            self._module.named_buffers(remove_duplicate=False),
        )
        for name, value in named:
            held = first.setdefault(id(value), name)
            if name in result and held in state:
                result[name] = state[held][run]
        return {name: value.clone() for name, value in result.items()}

    def embed(self, state: State, inputs: Inputs) -> Tensor:
        """Nothing: which part of a module does not depend on dropout is not known."""
        return torch.empty(0)

    def head(
        self, state: State, inputs: Inputs, settings: RunSettings, embedding: Tensor, epoch: int | None,
        rows: Tensor,
    ) -> Tensor:  # fmt: skip
        """Logits [1, T, L] at ``rows`` [1, T]. What a training step draws follows from run's seed and epoch.

        A training step changes the buffers of ``state``, unless it would leave one that is not finite.
        """
        values = {name: value[0] for name, value in state.items()}
        changed = {name: values[name].clone() for name in self._buffers}
        self._module.train(epoch is not None)
        with seeded(int(mask_keys(settings.seeds, -1 if epoch is None else epoch, 0)[0])):
            result = functional_call(self._module, values | changed, self._arguments, self._keywords)
        logits = check_logits(self._kind, result, self._shape)
        if epoch is not None and all(bool(value.isfinite().all()) for value in changed.values()):
            for name, value in changed.items():
                values[name].copy_(value)
        return logits.index_select(0, rows[0]).unsqueeze(0)


def _with_axis(values: Iterable[tuple[str, Tensor]]) -> State:
    return {name: value.detach().clone().unsqueeze(0) for name, value in values}


def _arguments(
    kind: ModelKind[Any], inputs: Inputs, weighted: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = inputs.matrix if kind.sparse_features else inputs.dense
    if kind.takes == "graph":
        return (x, inputs.graph), {}
    if not weighted:
        return (x, inputs.edge_index), {}
    return (x, inputs.edge_index), {"edge_weight": inputs.graph.weight.to(inputs.dtype)}
