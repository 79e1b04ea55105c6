"""Which runs of a search should predict together: rules compared on the same searches.

    python benchmarks/choosing_members.py [--datasets texas ...] [--splits 3] [--root DATASETS]
                                          [--json-out FILE]

Each row is one default search with all members on one division of the nodes, and test accuracy and log loss
of several ensembles of its runs:

"now"
    What a fit with four members does: the winner, and the runner-up if validation cannot tell them apart.
"winner"
    The winner's three seeds.
"finalists"
    All configurations of the last round, equally weighted.
"bootstrap"
    All configurations of the last round, weighted by how often each has the highest validation accuracy when
    the validation nodes are drawn with replacement. "bootstrap of all" takes those of the second round too.

Each configuration stands for the mean probabilities of its seeds. Rows that the file holds already are not
run again. DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from plap.data import load
from plap.fitting import FitSettings
from plap.fitting.search import fit_model
from plap.fitting.settings import MODEL
from plap.training import RunResult, tuning
from plap.training.halving import Rung, usual_budget
from saved_rows import Row, complete, usual_options
from splits import usual_split

SETS = ("texas", "wisconsin", "cornell", "cora", "citeseer", "chameleon-filtered")
MEMBERS = 4
DRAWS = 400
FIRST_ROUND = 100
"""Epochs of a run in the first round of a search, which are too few for a member."""


class Candidate(NamedTuple):
    """A configuration, the mean over its seeds."""

    finalist: bool
    test: np.ndarray
    """Probabilities of the test nodes [T, L]."""
    right: np.ndarray
    """Share of the seeds that have a validation node right, [V]."""


def measure(dataset: str, split: int, *, root: str | None = None) -> Row:
    """One search, and what its ensembles come to."""
    data = load(dataset, root)
    parts = usual_split(data, split)
    runs: dict[Any, list[tuple[bool, RunResult]]] = {}
    train = tuning._Stages.run

    def keep(self: Any, configs: Any, rung: Rung, *rest: Any, **more: Any) -> list[RunResult]:
        results = train(self, configs, rung, *rest, **more)
        if rung.epochs != FIRST_ROUND:
            for run in results:
                key = run.config.with_values(seed=0, max_epochs=1)
                runs.setdefault(key, []).append((rung.epochs == 0, run))
        return results

    tuning._Stages.run = keep  # type: ignore[method-assign]
    try:
        budget = usual_budget(data.graph, data.x, models=2)
        settings = FitSettings(seeds=MEMBERS, time_limit=None, budget=budget)
        found = fit_model(data.graph, data.x, data.y, parts, settings, MODEL, task=data.task)
    finally:
        tuning._Stages.run = train  # type: ignore[method-assign]

    def test(run: RunResult) -> np.ndarray:
        return run.logits.softmax(-1)[parts.test].numpy()

    def right(run: RunResult) -> np.ndarray:
        return (run.logits.argmax(-1) == data.y)[parts.val].double().numpy()

    candidates, winner = [], []
    for key, tried in runs.items():
        last = [run for final, run in tried if final] or [run for _, run in tried]
        finalist = any(final for final, _ in tried)
        candidates.append(
            Candidate(finalist, np.mean([*map(test, last)], 0), np.mean([*map(right, last)], 0))
        )
        if key == found.config.with_values(seed=0, max_epochs=1):
            winner = [test(run) for run in last]
    now = np.mean([test(run) for run in found.members], 0)
    return judge(candidates, now, np.mean(winner, 0), data.y[parts.test].numpy())


def judge(candidates: Sequence[Candidate], now: np.ndarray, winner: np.ndarray, labels: np.ndarray) -> Row:
    """Test accuracy in per cent and log loss of every rule."""
    finalists = [candidate for candidate in candidates if candidate.finalist]
    ensembles = {
        "now": now,
        "winner": winner,
        "finalists": np.mean([candidate.test for candidate in finalists], 0),
        "bootstrap": by_bootstrap(finalists),
        "bootstrap of all": by_bootstrap(candidates),
    }
    accuracy = {name: 100 * float((p.argmax(1) == labels).mean()) for name, p in ensembles.items()}
    loss = {
        name: float(-np.log(p[np.arange(labels.size), labels].clip(1e-4)).mean())
        for name, p in ensembles.items()
    }
    return {
        "accuracy": {name: round(value, 2) for name, value in accuracy.items()},
        "log loss": {name: round(value, 4) for name, value in loss.items()},
    }


def by_bootstrap(candidates: Sequence[Candidate]) -> np.ndarray:
    """Candidates weighted by how often they are the best on Bayesian bootstraps of the validation nodes."""
    right = np.array([candidate.right for candidate in candidates])
    draws = np.random.default_rng(0).dirichlet(np.ones(right.shape[1]), DRAWS)
    wins = np.bincount((right @ draws.T).argmax(0), minlength=len(candidates))
    return np.average([candidate.test for candidate in candidates], 0, wins)


def summary(rows: list[Row]) -> list[str]:
    """One line per dataset and measure."""
    lines = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == name]
        for measured in ("accuracy", "log loss"):
            means = {
                rule: statistics.fmean(row[measured][rule] for row in mine) for rule in mine[0][measured]
            }
            told = ", ".join(f"{rule} {mean:.4g}" for rule, mean in means.items())
            lines.append(f"{name}, {len(mine)} splits, {measured}: {told}")
    return lines


def main() -> None:
    """Measure what the file does not have yet."""
    options = usual_options(__doc__, SETS, 3, "choosing_members.json")
    jobs = [{"dataset": name, "split": k} for k in range(options.splits) for name in options.datasets]
    rows = complete(options.json_out, jobs, partial(measure, root=options.root))
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
