"""Which runs are trained together: equal in shape, and few enough for the memory and the cache."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from plap.errors import InputError
from plap.footprint import memory_needed
from plap.graph import Graph
from plap.memory import readable
from plap.models import find_model
from plap.training.config import RunConfig

DEFAULT_BUDGET = 2 * 2**30
"""Bytes."""

_CACHE = 24 * 2**20
"""Bytes of a batch beyond which more runs at once no longer pay: they push one another out of the cache."""

_AMORTISED = 8
"""Runs among which the cost of an epoch's Python is shared well enough, whatever the cache says."""


def run_bytes(config: RunConfig, nodes: int, features: int, classes: int, itemsize: int) -> int:
    """Estimate of what one run adds to a batch: activations, parameters, their gradients and moments.

    0 for a model whose runs are never together.
    """
    family = find_model(config.model).stacked
    if family is None:
        return 0
    held = family.width(config.parameters, classes) + 3 * classes
    return itemsize * (nodes * held + 6 * family.weights(config.parameters, features, classes))


def propagation_budget(
    config: RunConfig, run_size: int, graph: Graph, dtype: torch.dtype, budget: int
) -> int | None:
    """What of the budget is left for a propagation that would exceed it if all activations were kept.

    None where there is nothing to save. Refuses a budget in which the run cannot be trained at all.
    """
    family = find_model(config.model).stacked
    if family is None or family.propagation is None or run_size <= budget:
        return None
    channels, steps = family.propagation(config.parameters)
    need = memory_needed(graph.num_nodes, graph.num_entries, channels, steps, dtype=dtype)
    rest = max(0, run_size - need.usual)
    if budget < rest + need.least:
        raise InputError(
            f"memory_budget is too small: a run with {channels} hidden units and K = {steps} on "
            f"{graph.num_nodes} nodes needs at least {readable(rest + need.least)}"
        )
    return budget - rest


def make_batches(configs: Sequence[RunConfig], bytes_per_run: Sequence[int], budget: int) -> list[list[int]]:
    """Indices of the runs of each batch. A single run that exceeds the budget is a batch of its own."""
    groups: dict[tuple[object, ...], list[int]] = {}
    batches: list[list[int]] = []
    for index, config in enumerate(configs):
        if find_model(config.model).stacked is None:
            batches.append([index])
        else:
            groups.setdefault(_shape(config), []).append(index)
    for group in groups.values():
        each = max(bytes_per_run[index] for index in group)
        size = max(1, min(budget // each, max(_AMORTISED, _CACHE // each)))
        number = -(-len(group) // size)
        cuts = [len(group) * k // number for k in range(number + 1)]
        batches += [group[start:end] for start, end in itertools.pairwise(cuts)]
    return batches


def _shape(config: RunConfig) -> tuple[object, ...]:
    """What must be equal in a batch; without dropout a training step shares the evaluation's forward pass."""
    kind = find_model(config.model)
    assert kind.stacked is not None
    sizes = [getattr(config.parameters, name) for name in kind.stacked.equal]
    return config.model, *sizes, kind.may_share(config.parameters)
