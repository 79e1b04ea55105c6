"""SGC of Wu et al. (2019): K averagings and one linear map."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from plap.models.kind import Grid, ModelKind, with_strong_decay
from plap.models.parameters import Parameters, integer
from plap.models.stacked import Family, StackedInputs, StackedSettings, State, pick
from plap.nn.baselines import SGC


@dataclass(frozen=True)
class SGCParameters(Parameters):
    """Parameters of sgc."""

    K: int = integer(2)
    """Propagation steps."""


def _embed(state: State, inputs: StackedInputs) -> Tensor:
    return inputs.times_features(state["lin.weight"])


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    z = embedding
    for _ in range(settings.common("K")):
        z = inputs.averaged(z)
    return pick(z, rows) + state["lin.bias"].unsqueeze(1)


PAPER: Grid = {"lr": (0.2, 0.01), "weight_decay": (0.0, 5e-4)}
"""The appendix "Hyperparameter Settings"."""

SGC_MODEL = ModelKind(
    "sgc",
    SGCParameters,
    lambda c, i, o: SGC(i, o, c.K),
    title="SGC",
    # The paper also lists a dropout for SGC, which has no hidden units that could be dropped.
    grid=PAPER,
    search=with_strong_decay(PAPER),
    dropout_fields=(),
    stacked=Family(
        _embed,
        _head,
        equal=("K",),
        width=lambda c, classes: (2 * c.K + 4) * classes,
        weights=lambda c, features, classes: (features + 1) * classes,
        uses_adjacency=True,
    ),
    hops=lambda c: c.K + 1,
    module=SGC,
)
