"""Which runs are trained together: equal in shape, and few enough for the memory and the cache."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from plap.training.config import RunConfig

DEFAULT_BUDGET = 2 * 2**30
"""Bytes."""

_CACHE = 24 * 2**20
"""Bytes of a batch beyond which more runs at once no longer pay: they push one another out of the cache."""

_AMORTISED = 8
"""Runs among which the cost of an epoch's Python is shared well enough, whatever the cache says."""


def run_bytes(config: RunConfig, nodes: int, features: int, classes: int, itemsize: int) -> int:
    """Estimate of what one run adds to a batch: activations, parameters, their gradients and moments."""
    hidden = config.hidden
    parameters = (features + 1) * hidden + (hidden + 1) * classes
    widths = {
        "pgnn": (config.K + 9) * (-(-hidden // 8) * 8),
        "mlp": 5 * hidden,
        "gcn": 6 * hidden + 4 * classes,
        "sgc": (2 * config.K + 4) * classes,
        "appnp": 5 * hidden + (2 * config.K + 4) * classes,
        "gprgnn": 5 * hidden + (3 * config.K + 4) * classes,
    }
    return itemsize * (nodes * (widths[config.model] + 3 * classes) + 6 * parameters)


def make_batches(configs: Sequence[RunConfig], bytes_per_run: Sequence[int], budget: int) -> list[list[int]]:
    """Indices of the runs of each batch. A single run that exceeds the budget is a batch of its own."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, config in enumerate(configs):
        groups.setdefault(_shape(config), []).append(index)
    batches = []
    for group in groups.values():
        each = max(bytes_per_run[index] for index in group)
        size = max(1, min(budget // each, max(_AMORTISED, _CACHE // each)))
        number = -(-len(group) // size)
        cuts = [len(group) * k // number for k in range(number + 1)]
        batches += [group[start:end] for start, end in itertools.pairwise(cuts)]
    return batches


def uses_dropout(config: RunConfig) -> bool:
    """Whether a training step differs from an evaluation."""
    if config.model == "sgc":
        return False
    return config.dropout > 0 or (config.model == "gprgnn" and config.dprate > 0)


def _shape(config: RunConfig) -> tuple[object, ...]:
    """What must be equal in a batch; without dropout a training step shares the evaluation's forward pass."""
    steps = config.K if config.model in ("pgnn", "sgc", "appnp", "gprgnn") else 0
    return config.model, config.hidden, steps, uses_dropout(config)
