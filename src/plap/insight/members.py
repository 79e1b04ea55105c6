"""The modules of a trained model, ready to be asked."""

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
    """A module for each set of weights, in evaluation mode.

    Parameters
    ----------
    config : RunConfig
    states : sequence of state dictionaries
        One a member of the ensemble.
    features, classes : int
    """
    members = []
    for state in states:
        module = build_module(config, features, classes)
        try:
            module.load_state_dict(dict(state))
        except RuntimeError:
            raise InputError("the model's weights do not fit its configuration") from None
        members.append(module.eval())
    return members


def members_of(runs: Sequence[RunResult], features: int, classes: int) -> list[torch.nn.Module]:
    """The modules of finished runs; those that never got through an epoch are left out."""
    trained = [run for run in runs if run.best_epoch > 0]
    return [load_members(run.config, [run.state], features, classes)[0] for run in trained]


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """No dropout and no gradients inside; afterwards the module is as it was."""
    before = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(before)
