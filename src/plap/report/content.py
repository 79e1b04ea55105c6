"""What the page says, as plain values: whoever fits fills these in, and the template shows them.

Scores, shares and probabilities are numbers from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plap.errors import InputError


@dataclass(frozen=True)
class Dataset:
    """The graph and what was known of it."""

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    train: int
    val: int
    test: int
    notes: tuple[str, ...] = ()
    """What was symmetrised, dropped, merged or made up, a sentence each."""

    @property
    def unlabelled(self) -> int:
        """Nodes in none of the three sets."""
        return self.nodes - self.train - self.val - self.test


@dataclass(frozen=True)
class Score:
    """How good one method is on the held-out nodes."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval."""
    uses: str = ""
    """Such as "features and edges", "features alone"."""
    differs: bool | None = None
    """Whether it differs from the first score by more than chance; None where that was not tested."""


@dataclass(frozen=True)
class Confusion:
    """Held-out nodes by true class (rows) and predicted class (columns)."""

    classes: Sequence[str]
    counts: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        size = len(self.classes)
        if len(self.counts) != size or any(len(row) != size for row in self.counts):
            raise InputError(f"counts must be {size} rows of {size}, one for each class")


@dataclass(frozen=True)
class ClassRow:
    """One class in numbers, over the held-out nodes."""

    name: str
    train: int
    test: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Curve:
    """One training run, a number an epoch."""

    name: str
    """Such as "seed 3"."""
    train_loss: Sequence[float]
    val_loss: Sequence[float]
    val_score: Sequence[float]
    best_epoch: int
    """Counted from 1; 0 if there is none."""


@dataclass(frozen=True)
class Trial:
    """One configuration that the search tried."""

    config: Mapping[str, float | int | str]
    score: float
    """On the validation nodes."""
    epochs: int
    chosen: bool = False


@dataclass(frozen=True)
class NodeRow:
    """A node that the model is unsure of."""

    node: str
    predicted: str
    probability: float
    second: str
    second_probability: float
    known: str | None = None


@dataclass(frozen=True)
class EdgeRow:
    """An edge that the model makes little use of."""

    source: str
    target: str
    source_class: str
    target_class: str
    trust: float
    """Relative weight of the edge in the aggregation; 1 is what an edge counts on average."""


@dataclass(frozen=True)
class FitReport:
    """The whole page; a part that is empty is left out."""

    dataset: Dataset
    finding: str
    """One or two sentences: what was found."""
    scores: Sequence[Score]
    """The model first, then what it is compared with."""
    metric: str = "accuracy"
    confusion: Confusion | None = None
    per_class: Sequence[ClassRow] = ()
    curves: Sequence[Curve] = ()
    trials: Sequence[Trial] = ()
    uncertain_nodes: Sequence[NodeRow] = ()
    doubted_edges: Sequence[EdgeRow] = ()
    chosen: Mapping[str, float | int | str] = field(default_factory=dict)
    """The configuration that was used in the end."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Where the data came from, digests, date, duration."""
    versions: Mapping[str, str] = field(default_factory=dict)
