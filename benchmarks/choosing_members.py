"""Which runs of a search should predict together: rules compared on the same searches.

    python benchmarks/choosing_members.py [--datasets texas ...] [--splits 3] [--root DATASETS]
                                          [--json-out FILE]

Each row is one default search with all members on one division of the nodes, and test accuracy and log loss
of several ensembles of the runs of its last round:

"winner"
    The winner's seeds.
"before"
    The winner and the next best if it validates within two standard errors of it; where fewer than 250 nodes
    validate, up to three of them within one. Powers and other penalties, and networks with and without edges,
    do not join each other.
"as good"
    All that validate within two standard errors of the winner and have edges if it does. "as good, 8" is what
    a fit does, with eight members: a seed of each configuration, then another; "as good, 4", with four.
"powers, 8"
    The same among the configurations without another penalty, as if none had been searched.
"as good, of its sort"
    The same, but powers and penalties do not join each other.
"finalists"
    All configurations of the last round.
"bootstrap"
    All configurations of the last round, weighted by how often each has the highest validation accuracy when
    the validation nodes are drawn with replacement.

Before, too, eight members at most take turns. Otherwise each configuration stands for the mean probabilities
of its seeds. Rows that the file holds already are not run again. DATASETS is a folder in the layout of
``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from plap.data import load
from plap.data import split as split_nodes
from plap.fitting import FitSettings
from plap.fitting.search import fit_model
from plap.fitting.settings import MODEL
from plap.training import RunConfig, RunResult, tuning
from plap.training.halving import Rung, usual_budget
from saved_rows import Row, complete, usual_options
from splits import usual_split

SETS = ("texas", "wisconsin", "cornell", "cora", "citeseer", "chameleon-filtered")
MEMBERS = 4
DRAWS = 400
FEW_NODES, FOUR, TWO = 250, (4, 1.0), (2, 2.0)
"""Of the rule of before: validation nodes below which four predict together instead of two, and the standard
errors that are allowed for each."""


class Finalist(NamedTuple):
    """A configuration of the last round."""

    config: RunConfig
    score: float
    """On the validation nodes, the mean over its seeds."""
    right: np.ndarray
    """Share of the seeds that have a validation node right, [V]."""
    test: list[np.ndarray]
    """Probabilities of the test nodes, [T, L] for each seed."""

    @property
    def mean(self) -> np.ndarray:
        """Mean probabilities of the seeds."""
        mean: np.ndarray = np.mean(self.test, 0)
        return mean

    @property
    def has_another_penalty(self) -> bool:
        """Whether its penalty is not a power."""
        return getattr(self.config.parameters, "penalty", "power") != "power"


def measure(dataset: str, split: int, *, root: str | None = None) -> Row:
    """One search, and what its ensembles come to."""
    data = load(dataset, root)
    parts = split_nodes(data, "public") if "metattack" in dataset else usual_split(data, split)
    last: dict[RunConfig, list[RunResult]] = {}
    train = tuning._Stages.run

    def keep(self: Any, configs: Any, rung: Rung, *rest: Any, **more: Any) -> list[RunResult]:
        results = train(self, configs, rung, *rest, **more)
        if rung.epochs == 0:
            for run in results:
                last.setdefault(run.config.with_values(seed=0), []).append(run)
        return results

    tuning._Stages.run = keep  # type: ignore[method-assign]
    try:
        budget = usual_budget(data.graph, data.x, models=2)
        seed = split if "metattack" in dataset else 0
        settings = FitSettings(seeds=MEMBERS, time_limit=None, budget=budget, seed=seed)
        found = fit_model(data.graph, data.x, data.y, parts, settings, MODEL, task=data.task)
    finally:
        tuning._Stages.run = train  # type: ignore[method-assign]
    finalists = [
        Finalist(
            config,
            statistics.fmean(run.val_score for run in runs),
            np.mean([(run.logits.argmax(-1) == data.y)[parts.val].double().numpy() for run in runs], 0),
            [run.logits.softmax(-1)[parts.test].numpy() for run in runs],
        )
        for config, runs in last.items()
    ]
    return judge(finalists, found.config.with_values(seed=0), data.y[parts.test].numpy())


def judge(finalists: Sequence[Finalist], best: RunConfig, labels: np.ndarray) -> Row:
    """Test accuracy in per cent and log loss of every rule."""
    winner = next(each for each in finalists if each.config == best)
    order = sorted(finalists, key=lambda each: (each is not winner, -each.score))
    nodes = winner.right.size
    joined = [each for each in order if as_good(winner, each, 2.0, perfect_is_certain=False)]
    of_its_sort = [each for each in joined if like(winner, each)]
    most, errors = FOUR if nodes < FEW_NODES else TWO
    before = [
        each
        for each in [other for other in order if other.has_another_penalty == winner.has_another_penalty][
            :most
        ]
        if as_good(winner, each, errors, perfect_is_certain=True)
    ]
    members = in_turns(joined)
    powers = [each for each in order if not each.has_another_penalty]
    of_powers = [each for each in powers if as_good(powers[0], each, 2.0, perfect_is_certain=False)]
    ensembles = {
        "winner": winner.mean,
        "before": np.mean(in_turns(before)[:8], 0),
        "as good": np.mean([each.mean for each in joined], 0),
        "as good, 8": np.mean(members[:8], 0),
        "as good, 4": np.mean(members[:4], 0),
        "powers, 8": np.mean(in_turns(of_powers)[:8], 0),
        "as good, of its sort": np.mean([each.mean for each in of_its_sort], 0),
        "finalists": np.mean([each.mean for each in finalists], 0),
        "bootstrap": by_bootstrap(finalists),
    }
    accuracy = {name: 100 * float((p.argmax(1) == labels).mean()) for name, p in ensembles.items()}
    loss = {
        name: float(-np.log(p[np.arange(labels.size), labels].clip(1e-4)).mean())
        for name, p in ensembles.items()
    }
    return {
        "finalists": len(finalists),
        "joined": len(joined),
        "accuracy": {name: round(value, 2) for name, value in accuracy.items()},
        "log loss": {name: round(value, 4) for name, value in loss.items()},
    }


def like(winner: Finalist, other: Finalist) -> bool:
    """Whether both have powers or both other penalties."""
    return other.has_another_penalty == winner.has_another_penalty


def in_turns(finalists: Sequence[Finalist]) -> list[np.ndarray]:
    """A seed of each, then another one of each."""
    turns = itertools.zip_longest(*(each.test for each in finalists))
    return [test for turn in turns for test in turn if test is not None]


def as_good(winner: Finalist, other: Finalist, errors: float, *, perfect_is_certain: bool) -> bool:
    """Whether another finalist is at most so many standard errors of the winner's score behind it.

    By Agresti and Coull a perfect score has an error too, which the rule of before did not know.
    """
    nodes = winner.right.size
    share = winner.score if perfect_is_certain else (winner.score * nodes + 2) / (nodes + 4)
    margin = errors * math.sqrt(share * (1 - share) / nodes)
    return winner.score - other.score <= margin and winner.config.uses_edges == other.config.uses_edges


def by_bootstrap(finalists: Sequence[Finalist]) -> np.ndarray:
    """Finalists weighted by how often they are the best on Bayesian bootstraps of the validation nodes."""
    right = np.array([each.right for each in finalists])
    draws = np.random.default_rng(0).dirichlet(np.ones(right.shape[1]), DRAWS)
    wins = np.bincount((right @ draws.T).argmax(0), minlength=len(finalists))
    return np.average([each.mean for each in finalists], 0, wins)


def summary(rows: list[Row]) -> list[str]:
    """One line per dataset and measure, and the mean gains over the rule of before with standard errors."""
    lines = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == name]
        for measured in ("accuracy", "log loss"):
            means = {
                rule: statistics.fmean(row[measured][rule] for row in mine) for rule in mine[0][measured]
            }
            told = ", ".join(f"{rule} {mean:.4g}" for rule, mean in means.items())
            gains = [row[measured]["as good, 8"] - row[measured]["before"] for row in mine]
            error = statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else math.nan
            gain = f"{statistics.fmean(gains):+.3g} ± {error:.2g}"
            lines.append(f"{name}, {len(mine)} splits, {measured}: {told}; eight over before {gain}")
    return lines


def main() -> None:
    """Measure what the file does not have yet."""
    options = usual_options(__doc__, SETS, 3, "choosing_members.json")
    jobs = [{"dataset": name, "split": k} for k in range(options.splits) for name in options.datasets]
    rows = complete(options.json_out, jobs, partial(measure, root=options.root))
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
