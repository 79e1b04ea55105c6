"""What the report of a fit says, as plain values: whoever fits fills them in, page and terminal show them.

Shares and probabilities are numbers from 0 to 1, and so are most scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plap.errors import InputError
from plap.reporting.number_text import counted, joined, shown


@dataclass(frozen=True)
class DatasetFacts:
    """The graph and how its labels were split."""

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    train: int
    val: int
    test: int
    notes: tuple[str, ...] = ()
    """What was symmetrised, dropped, merged or generated; one sentence each."""

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
    """Ends of the 95 % confidence interval."""
    uses: str = ""
    """Such as "features and edges", "features alone"."""
    differs: bool | None = None
    """Whether it differs significantly from the first score; None where that was not tested."""
    seconds: float | None = None
    """Time to search and train."""


@dataclass(frozen=True)
class ConfusionMatrix:
    """Held-out nodes by true class (rows) and predicted class (columns)."""

    classes: Sequence[str]
    counts: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        size = len(self.classes)
        if len(self.counts) != size or any(len(row) != size for row in self.counts):
            raise InputError(f"counts must be {size} rows of {size}, one per class")


@dataclass(frozen=True)
class ClassRow:
    """The scores of one class on the held-out nodes."""

    name: str
    train: int
    test: int
    precision: float | None
    """None where the class was never predicted."""
    recall: float | None
    """None, and so is F1, where no held-out node is of the class."""
    f1: float | None


@dataclass(frozen=True)
class TrainingRun:
    """The history of one training run, one value per epoch."""

    name: str
    """Such as "seed 3"."""
    train_loss: Sequence[float]
    val_loss: Sequence[float]
    val_score: Sequence[float]
    best_epoch: int
    """Counted from 1; 0 if there is none."""


@dataclass(frozen=True)
class TrialRow:
    """One configuration that the search tried."""

    config: Mapping[str, float | int | str]
    score: float
    """On the validation nodes."""
    epochs: int
    chosen: bool = False


@dataclass(frozen=True)
class NodeRow:
    """A node that the model is uncertain about."""

    node: str
    predicted: str
    probability: float
    second: str
    second_probability: float
    known: str | None = None


@dataclass(frozen=True)
class EdgeRow:
    """An edge that the model has little trust in."""

    source: str
    target: str
    source_class: str
    target_class: str
    trust: float
    """Odds that the two nodes are joined by an edge rather than drawn at random from the pairs without one,
    judged without the edge itself: 1 is chance (:func:`plap.insight.edge_trust`)."""


@dataclass(frozen=True)
class ColumnRow:
    """One column of the table of nodes: what it became, and how much the model relies on it."""

    name: str
    kind: str
    features: int
    missing: int
    sentence: str
    """What it became and why."""
    importance: float | None = None
    """By how much the metric falls when the column is shuffled; None where that was not measured."""


@dataclass(frozen=True)
class RelationRow:
    """One of several relations between the nodes."""

    name: str
    edges: int
    factor: float
    """What its edges are multiplied by; the mean over relations is 1."""
    without: float
    """The metric on held-out nodes if the relation's edges were not there."""


@dataclass(frozen=True)
class NeighbourFacts:
    """What the neighbours do to the held-out nodes."""

    judged: int
    helped: int
    """Nodes that are classified correctly only because of their neighbours."""
    harmed: int
    """Nodes that are classified wrongly only because of them."""
    rows: Sequence[NeighbourRow]
    """The nodes whose neighbours matter most."""


@dataclass(frozen=True)
class NeighbourRow:
    """A held-out node and the probability of its true class."""

    node: str
    known: str
    with_neighbours: float
    without: float


@dataclass(frozen=True)
class FitReport:
    """The whole report; a part that is empty is left out."""

    dataset: DatasetFacts
    finding: str
    """One or two sentences: what was found."""
    scores: Sequence[Score]
    """The model first, then what it is compared with."""
    metric: str = "accuracy"
    """What the scores are."""
    share: bool = True
    """Whether scores lie between 0 and 1 and are written in per cent."""
    higher_is_better: bool = True
    confusion: ConfusionMatrix | None = None
    per_class: Sequence[ClassRow] = ()
    runs: Sequence[TrainingRun] = ()
    trials: Sequence[TrialRow] = ()
    uncertain_nodes: Sequence[NodeRow] = ()
    doubted_edges: Sequence[EdgeRow] = ()
    columns: Sequence[ColumnRow] = ()
    neighbours: NeighbourFacts | None = None
    relations: Sequence[RelationRow] = ()
    attackable: bool = True
    """Whether ``plap attack`` has edges to change and a model to mislead by them."""
    judged_edges: int | None = None
    """How many edges were drawn and judged; None: all were."""
    chosen: Mapping[str, float | int | str] = field(default_factory=dict)
    """The hyperparameters that were used in the end."""
    runners_up: Sequence[Mapping[str, float | int | str]] = ()
    """Those of some members of the ensemble, where validation could not tell them from the former."""
    runner_up_members: int = 0
    """How many members these are."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Where the data came from, digests, date, duration."""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def about_runners_up(self) -> str:
        """Why some members of the ensemble have other hyperparameters, without a full stop."""
        several = len(self.runners_up) > 1
        configurations = f"{len(self.runners_up) + 1 if several else 'Two'} configurations"
        have = "has" if self.runner_up_members == 1 else "have"
        whose = "those of runners-up" if several else "that of the runner-up"
        return (
            f"{configurations} that validation cannot tell apart predict together: "
            f"{self.runner_up_members} of the {len(self.runs)} members of the ensemble {have} {whose}"
        )

    @property
    def how_runners_up_differ(self) -> list[dict[str, float | int | str]]:
        """Their values that are not those of the selected hyperparameters."""
        return [
            {name: value for name, value in values.items() if self.chosen.get(name) != value}
            for values in self.runners_up
        ]

    @property
    def provenance_lists(self) -> list[tuple[str, Mapping[str, float | int | str]]]:
        """Headings, and what stands below them."""
        differing = self.how_runners_up_differ
        several = len(differing) > 1
        others = ((f"Runner-up {k}" if several else "Runner-up", c) for k, c in enumerate(differing, 1))
        return [
            ("Selected hyperparameters", self.chosen),
            *others,
            ("Data", self.provenance),
            ("Software versions", self.versions),
        ]


def finding(
    scores: Sequence[Score],
    held_out: int,
    metric: str = "accuracy",
    *,
    share: bool = True,
    higher_is_better: bool = True,
) -> str:
    """Say how good the first score is and, where that was tested, whether it differs from the others.

    Examples
    --------
    >>> mlp = Score("MLP", 0.74, 0.71, 0.77, differs=True, uses="features alone")
    >>> print(finding([Score("pGNN", 0.86, 0.84, 0.88), mlp], 900))
    On 900 held-out nodes, pGNN reaches an accuracy of 86.0 % (95 % confidence interval: 84.0 to 88.0).
    It is significantly better than MLP (features alone, 74.0 %).
    """
    model, *others = scores
    nodes = counted(held_out, "held-out node")
    text = f"On {nodes}, {model.name} reaches {_article(metric)} {metric} of {shown(model.value, share)}"
    if model.low is not None and model.high is not None:
        text += f" (95 % confidence interval: {interval_text(model.low, model.high, share)})"
    worse = [score for score in others if (score.value > model.value) == higher_is_better]
    groups = {
        "significantly better than": [score for score in others if score.differs and score not in worse],
        "not significantly different from": [score for score in others if score.differs is False],
        "significantly worse than": [score for score in worse if score.differs],
    }
    parts = [
        f"{relation} {joined([_named(s, share) for s in group])}"
        for relation, group in groups.items()
        if group
    ]
    text = f"{text}." + (f" It is {joined(parts)}." if parts else "")
    beaten = groups["significantly worse than"]
    if beaten:
        best = (max if higher_is_better else min)(beaten, key=lambda score: score.value)
        text += f" On this data, {best.name} is the better choice."
    ahead = [score.name for score in worse if score.differs is False]
    if ahead:
        were = "was" if len(ahead) == 1 else "were"
        text += f" {_capital(joined(ahead))} {were} better on these nodes, which may be chance."
    return text


def interval_text(low: float, high: float, share: bool = True) -> str:
    """Both ends of an interval.

    Examples
    --------
    >>> interval_text(0.84, 0.88), interval_text(1.25, 2.0, share=False)
    ('84.0 to 88.0', '1.25 to 2')
    """
    if share:
        return f"{100 * low:.1f} to {100 * high:.1f}"
    return f"{shown(low, share)} to {shown(high, share)}"


def _named(score: Score, share: bool) -> str:
    return f"{score.name} ({', '.join(filter(None, [score.uses, shown(score.value, share)]))})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" or noun == "R²" else "a"
