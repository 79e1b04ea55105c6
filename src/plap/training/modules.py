"""Any PyTorch module as a run: built with a seed, checked, and called as a stacked family is."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from plap.errors import InputError
from plap.models import ModelKind, find_model
from plap.models.stacked import StackedState, State
from plap.training.config import RunConfig
from plap.training.inputs import Inputs, RunSettings
from plap.training.native import mask_keys


def build_module(config: RunConfig, in_channels: int, out_channels: int) -> torch.nn.Module:
    """The module of ``config``, its weights drawn with ``config.seed`` in float32.

    PyTorch's own generator and its default type of numbers are left unchanged.

    Examples
    --------
    >>> build_module(RunConfig(model="mlp"), 4, 3).lin1
    FeatureLinear(in_features=4, out_features=16, bias=True)
    """
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with seeded(config.seed):
            module = find_model(config.model).build(config.parameters, in_channels, out_channels)
    finally:
        torch.set_default_dtype(default)
    if not isinstance(module, torch.nn.Module):
        kind = type(module).__name__
        raise InputError(f"build of model {config.model!r} must return a torch.nn.Module, not {kind}")
    return module


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Draw random numbers from ``seed``; afterwards PyTorch's own generators are as they were.

    Parameters
    ----------
    seed : int
    device : torch.device, optional
        A CUDA or MPS device whose generator is seeded as well, besides that of the CPU.

    Examples
    --------
    >>> with seeded(3):
    ...     first = torch.rand(4)
    >>> with seeded(3):
    ...     print(torch.equal(torch.rand(4), first))
    True
    """
    cuda = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        # not torch.manual_seed: where CUDA may come to be used, it keeps a stack trace of every call
        torch.default_generator.manual_seed(seed)
        for each in cuda:
            torch.cuda.default_generators[each.index].manual_seed(seed)
        if device is not None and device.type == "mps":
            torch.mps.manual_seed(seed)
        yield


def check_trainable(kind: ModelKind[Any], module: torch.nn.Module, *, weighted: bool) -> None:
    """Refuse a module without trainable parameters, or without edge weights if the graph is weighted."""
    if any(is_lazy(value) for value in module.parameters()):
        raise InputError(f"model {kind.name!r} has a parameter without a shape: build it with in_channels")
    if not any(value.requires_grad for value in module.parameters()):
        raise InputError(f"model {kind.name!r} has no parameter to train")
    if weighted and kind.takes == "edge_index" and not _takes_weights(module):
        raise InputError(
            f"the graph is weighted, but the forward of model {kind.name!r} takes no edge_weight"
        )


def check_logits(kind: ModelKind[Any], logits: Any, shape: tuple[int, int]) -> Tensor:
    """Return ``logits`` if it is a tensor of this shape."""
    if not isinstance(logits, Tensor) or logits.shape != shape:
        got = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise InputError(f"model {kind.name!r} must return logits of shape {list(shape)}, not {got}")
    return logits


def _takes_weights(module: torch.nn.Module) -> bool:
    parameters = inspect.signature(module.forward).parameters.values()
    return any(each.name == "edge_weight" or each.kind is each.VAR_KEYWORD for each in parameters)


class SingleModule:
    """One run of any module, with the methods of :class:`plap.models.stacked.Family`.

    Parameters
    ----------
    kind : ModelKind
    module : torch.nn.Module
        With its initial weights; converted to the dtype of the inputs.
    inputs : Inputs
    num_classes : int
    """

    def __init__(
        self, kind: ModelKind[Any], module: torch.nn.Module, inputs: Inputs, num_classes: int
    ) -> None:
        weighted = inputs.graph.is_weighted
        check_trainable(kind, module, weighted=weighted)
        self._device = inputs.graph.device
        self._kind, self._module = kind, module.to(self._device, inputs.dtype)
        self._arguments, self._keywords = _arguments(kind, inputs, weighted)
        self._shape = (inputs.graph.num_nodes, num_classes)
        self._buffers = [name for name, value in module.named_buffers() if value.layout == torch.strided]

    def stack(self, modules: Sequence[torch.nn.Module], dtype: torch.dtype) -> StackedState:
        """Parameters and buffers, each with a leading axis for the one run."""
        parameters = ((name, value) for name, value in self._module.named_parameters() if value.requires_grad)
        buffers = ((name, self._module.get_buffer(name)) for name in self._buffers)
        return StackedState(_with_axis(parameters), _with_axis(buffers))

    def unstack(self, state: State, run: int) -> State:
        """The module's state dict; a tensor with two names (tied weights) appears under both."""
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
        return {name: value.cpu().clone() for name, value in result.items()}

    def embed(self, state: State, inputs: Inputs) -> Tensor:
        """Empty: which part of a module does not depend on dropout is not known."""
        return torch.empty(0)

    def head(
        self, state: State, inputs: Inputs, settings: RunSettings, embedding: Tensor, epoch: int | None,
        rows: Tensor,
    ) -> Tensor:  # fmt: skip
        """Logits [1, T, L] at ``rows`` [1, T]; random numbers depend on the run's seed and the epoch alone.

        A training step updates the buffers of ``state``, unless one of them would not be finite.
        """
        values = {name: value[0] for name, value in state.items()}
        changed = {name: values[name].clone() for name in self._buffers}
        self._module.train(epoch is not None)
        key = int(mask_keys(settings.seeds, -1 if epoch is None else epoch, 0)[0])
        with seeded(key, self._device):
            result = functional_call(self._module, values | changed, self._arguments, self._keywords)
        logits = check_logits(self._kind, result, self._shape)
        if epoch is not None and changed:
            sound = torch.stack([value.isfinite().all() for value in changed.values()]).all()
            for name, value in changed.items():
                values[name].copy_(torch.where(sound, value, values[name]))
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


class Halo(NamedTuple):
    """What must surround nodes for their predictions to be exact."""

    hops: int
    rim_loops: bool
    """Whether self-loops replace the edges that lead out, see :func:`plap.parts.with_halo`."""


def halo_of(config: RunConfig, module: torch.nn.Module) -> Halo | None:
    """The halo with which predictions are exact; None if it is not known how far the model sees.

    The number of hops is given by the model (:attr:`plap.models.ModelKind.hops`) or by an attribute ``hops``
    of its module. A model that takes an ``edge_index`` gets no self-loops at the rim, which would have to be
    weighted, but one hop more: every node whose messages count then has all its neighbours.
    """
    kind = find_model(config.model)
    hops = getattr(module, "hops", None) if kind.hops is None else kind.hops(config.parameters)
    if not isinstance(hops, int) or hops < 0:
        return None
    takes_loops = kind.takes == "graph"
    return Halo(hops if takes_loops else hops + 1, rim_loops=takes_loops)
