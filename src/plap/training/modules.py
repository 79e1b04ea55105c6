"""The single-run module of a configuration."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from plap.nn import PGNN, baselines
from plap.training.config import RunConfig

_BUILDERS: dict[str, Callable[[RunConfig, int, int], torch.nn.Module]] = {
    "pgnn": lambda c, i, o: PGNN(i, c.hidden, o, p=c.p, mu=c.mu, K=c.K, dropout=c.dropout),
    "mlp": lambda c, i, o: baselines.MLP(i, c.hidden, o, c.dropout),
    "gcn": lambda c, i, o: baselines.GCN(i, c.hidden, o, c.dropout),
    "sgc": lambda c, i, o: baselines.SGC(i, o, c.K),
    "appnp": lambda c, i, o: baselines.APPNP(i, c.hidden, o, c.K, c.alpha, c.dropout),
    "gprgnn": lambda c, i, o: baselines.GPRGNN(i, c.hidden, o, c.K, c.alpha, c.dropout, c.dprate),
}


def build_module(config: RunConfig, in_channels: int, out_channels: int) -> torch.nn.Module:
    """The module of ``config``, its weights drawn with ``config.seed``.

    PyTorch's own generator is left as it was.

    Examples
    --------
    >>> build_module(RunConfig(model="mlp"), 4, 3).lin1
    FeatureLinear(in_features=4, out_features=16, bias=True)
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return _BUILDERS[config.model](config, in_channels, out_channels)


def initial_state(config: RunConfig, in_channels: int, out_channels: int) -> dict[str, Tensor]:
    """What a run starts from, by the module's names."""
    return dict(build_module(config, in_channels, out_channels).state_dict())
