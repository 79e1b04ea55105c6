"""Whether searching penalties beside the powers costs accuracy: two searches on the same splits, in pairs.

    python benchmarks/wider_search.py [--datasets texas cora ...] [--runs 10] [--budget auto] [--members 4]
        [--root DATASETS] [--json-out FILE]

The first search of ``plap fit`` may choose among powers alone, the second among all penalties. Both have the
same split, seed and budget, to which the second adds what the penalties cost, and choose by validation;
deeper models, which a default fit tries on some graphs, are left out of both. The second search trains all
that the first one does (``tests/training/test_tuning.py``), which takes its runs from there.
With --json-out the file is written after every pair, and pairs that it holds already are not run again.
Several datasets take turns, so that after an interruption each of them has about as many pairs.

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from plap.data import GraphData, Split, load
from plap.fitting import FitSettings
from plap.fitting.search import fit_model
from plap.fitting.settings import MODEL
from plap.reporting.figures.figure import ALL
from plap.training import RunConfig, RunResult, tuning
from plap.training.workers import train_side_by_side
from splits import usual_split

Budget = int | Literal["auto"]

SEARCHES = ("powers", "wider")
FIXED: dict[str, Any] = {"models": (MODEL,)}
"""What both searches have in common, besides budget, members and seed."""

ALLOWED = -0.5
"""Points of accuracy that the wider search may lose."""


def run_pair(data: GraphData, seed: int, budget: Budget, members: int) -> dict[str, Any]:
    """Both searches on the split of this seed: test accuracy in per cent, and what validation chose."""
    parts = usual_split(data, seed)
    row: dict[str, Any] = {"dataset": data.name, "seed": seed, "budget": budget, "members": members}
    with runs_trained_once():
        for search, fixed in (("wider", {}), ("powers", {"penalty": "power"})):
            settings = FitSettings(**FIXED, fixed=fixed, budget=budget, seeds=members, seed=seed)
            row[search] = run_search(data, parts, settings)
    row["powers"]["cpu_seconds"] = None  # its runs are those of the wider search
    return row


@contextmanager
def runs_trained_once() -> Iterator[None]:
    """Searches on the same data and split train no configuration twice."""
    known = dict[RunConfig, RunResult]()

    def once(graph: Any, x: Any, y: Any, configs: Sequence[RunConfig], *rest: Any, **options: Any) -> Any:
        missing = [config for config in configs if config not in known]
        if missing:
            trained = train_side_by_side(graph, x, y, missing, *rest, **options)
            known.update(zip(missing, trained, strict=True))
        return [known[config] for config in configs]

    with patch.object(tuning, "train_side_by_side", once):
        yield


def run_search(data: GraphData, parts: Split, settings: FitSettings) -> dict[str, Any]:
    """Test accuracy of a search's ensemble in per cent, and what validation chose."""
    begin = time.process_time()
    found = fit_model(data.graph, data.x, data.y, parts, settings, task=data.task)
    right = found.ensemble.predictions[parts.test] == data.y[parts.test]
    return {
        "accuracy": 100 * float(right.double().mean()),
        "validation": 100 * statistics.fmean(run.val_score for run in found.ensemble.runs),
        "finite": all(math.isfinite(run.val_loss) for run in found.ensemble.runs),
        "chosen": {
            key: found.config.value(key) for key in ("penalty", "p", "gamma", "unit", "mu", "K", "lr")
        },
        "cpu_seconds": time.process_time() - begin,
    }


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """One line per dataset: both means, the mean difference with its standard error, and what was chosen."""
    lines = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == name]
        before, after = ([row[search]["accuracy"] for row in mine] for search in SEARCHES)
        gains = [b - a for a, b in zip(before, after, strict=True)]
        error = statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else math.nan
        chosen = [row["wider"]["chosen"]["penalty"] for row in mine]
        counts = ", ".join(f"{penalty} {chosen.count(penalty)}" for penalty in dict.fromkeys(chosen))
        gain = statistics.fmean(gains)
        lines.append(
            f"{name}: {len(mine)} pairs, powers {statistics.fmean(before):.2f}, wider "
            f"{statistics.fmean(after):.2f}, gain {gain:+.2f} ± {error:.2f} (chose {counts}); "
            f"{'holds' if gain >= ALLOWED else 'loses more than half a point'}"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=list(ALL))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--budget", default="auto", help="epochs of each search, or auto")
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--root", default=os.environ.get("PLAP_DATA"))
    parser.add_argument("--json-out", type=Path)
    options = parser.parse_args()
    budget: Budget = "auto" if options.budget == "auto" else int(options.budget)
    out: Path | None = options.json_out
    rows: list[dict[str, Any]] = json.loads(out.read_text())["rows"] if out and out.exists() else []
    keys = ("dataset", "seed", "budget", "members")
    done = {tuple(row[key] for key in keys) for row in rows}
    graphs = {name: load(name, options.root) for name in options.datasets}
    for seed in range(options.runs):
        for data in graphs.values():
            if (data.name, seed, budget, options.members) in done:
                continue
            rows.append(run_pair(data, seed, budget, options.members))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
            if out:
                out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    print("\n".join(verdicts(rows)))


if __name__ == "__main__":
    main()
