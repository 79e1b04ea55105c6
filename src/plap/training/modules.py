"""The single-run module of a configuration."""

from __future__ import annotations

import torch

from plap.errors import InputError
from plap.models import find_model
from plap.training.config import RunConfig
from plap.training.seeding import seeded


def build_module(config: RunConfig, in_channels: int, out_channels: int) -> torch.nn.Module:
    """The module of ``config``, its weights drawn with ``config.seed``.

    PyTorch's own generator is left as it was.

    Examples
    --------
    >>> build_module(RunConfig(model="mlp"), 4, 3).lin1
    FeatureLinear(in_features=4, out_features=16, bias=True)
    """
    with seeded(config.seed):
        module = find_model(config.model).build(config.parameters, in_channels, out_channels)
    if not isinstance(module, torch.nn.Module):
        kind = type(module).__name__
        raise InputError(f"build of model {config.model!r} must give a torch.nn.Module, not {kind}")
    return module
