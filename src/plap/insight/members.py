"""The modules of a trained model, ready for evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from plap.errors import InputError
from plap.training import RunConfig, RunResult, build_module


def load_members(
    config: RunConfig, states: Sequence[Mapping[str, Tensor]], features: int, classes: int
) -> list[torch.nn.Module]:
    """One module per set of weights, in evaluation mode.

    Parameters
    ----------
    config : RunConfig
    states : sequence of state dictionaries
        One per member of the ensemble.
    features, classes : int

    Examples
    --------
    >>> import plap
    >>> config = RunConfig(hidden=4)
    >>> (member,) = load_members(config, [plap.nn.PGNN(3, 4, 2).state_dict()], features=3, classes=2)
    >>> member.training
    False
    """
    members = []
    for state in states:
        module = build_module(config, features, classes)
        try:
            module.load_state_dict(dict(state))
        except RuntimeError:
            raise InputError("the weights of the model do not match its configuration") from None
        members.append(module.eval())
    return members


def members_of(runs: Sequence[RunResult], features: int, classes: int) -> list[torch.nn.Module]:
    """The modules of finished runs; runs that did not complete an epoch are left out."""
    trained = [run for run in runs if run.best_epoch > 0]
    return [load_members(run.config, [run.state], features, classes)[0] for run in trained]


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Turn dropout and gradients off; afterwards the module is in its previous mode."""
    before = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(before)
