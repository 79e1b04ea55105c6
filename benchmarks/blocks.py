"""Forms of deep pGNNs beside pGNN, GCN and MLP: one run per setting and split, 300 epochs at most.

    python benchmarks/blocks.py [--datasets texas ...] [--splits 5] [--root DATASETS] [--json-out FILE]

Writes validation and test accuracy of every run, and prints the setting of each kind of network that has the
best mean validation accuracy. Which forms a search draws was decided by such runs. Rows that the file holds
already are not run again.

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import itertools
import statistics
from functools import partial
from typing import Any

from plap.data import load
from plap.training import RunConfig, train_runs
from saved_rows import Row, complete, usual_options
from splits import usual_split

SETS = ("chameleon-filtered", "texas", "wisconsin")
Values = dict[str, Any]

DEEP: Values = {
    "model": "deep-pgnn", "hidden": 64, "mlp_layers": 1, "output": "linear", "K": 1, "mu": 0.01, "p": 2.0,
}  # fmt: skip
BLOCK: Values = DEEP | {"layers": 3, "concat": True}
PLAIN: Values = DEEP | {"norm": "none"}
KINDS: dict[str, Values] = {
    "MLP": {"model": "mlp", "hidden": 64},
    "GCN": {"model": "gcn", "hidden": 64},
    "SAGE": {"model": "sage", "hidden": 64},
    **{
        f"pGNN, p = {p}, μ = {mu}": {"model": "pgnn", "p": p, "mu": mu}
        for p in (1.5, 2.0)
        for mu in (0.01, 1.0)
    },
    **{
        f"{n} plain{', beside' * c}{', residual' * r}": PLAIN | {"layers": n, "concat": c, "residual": r}
        for n, c, r in itertools.product((1, 2), (False, True), (False, True))
    },
    **{
        f"3 blocks, {norm}{', in front' * front}{', residual' * r}": BLOCK
        | {"norm": norm, "prenorm": front, "residual": r}
        for norm, front, r in itertools.product(("batch", "layer"), (False, True), (False, True))
    },
}
"""Networks whose learning rate, dropout and weight decay are varied."""
RATES, DROPOUT, DECAY = (0.003, 0.01, 0.05), (0.0, 0.2, 0.5, 0.8), (0.0, 5e-4, 5e-3)


def measure(dataset: str, kind: str, splits: int, *, root: str | None = None) -> Row:
    """Every setting of one kind on all splits, trained as one batch: accuracies in per cent."""
    data = load(dataset, root)
    parts = [usual_split(data, k) for k in range(splits)]
    settings = list(itertools.product(RATES, DROPOUT, DECAY))
    configs = [
        RunConfig(lr=lr, dropout=dropout, weight_decay=decay, max_epochs=300, patience=100, **KINDS[kind])
        for lr, dropout, decay in settings
        for _ in parts
    ]
    runs = train_runs(data.graph, data.x, data.y, configs, parts * len(settings), task=data.task)
    results = iter(runs)
    found = []
    for lr, dropout, decay in settings:
        mine = [(next(results), part) for part in parts]
        right = [float((run.logits.argmax(1) == data.y)[part.test].double().mean()) for run, part in mine]
        found.append(
            {
                "lr": lr,
                "dropout": dropout,
                "weight_decay": decay,
                "validation": [round(100 * run.val_score, 2) for run, _ in mine],
                "test": [round(100 * share, 2) for share in right],
            }
        )
    return {"settings": found}


def summary(rows: list[Row]) -> list[str]:
    """For every dataset its kinds, best validation first."""
    lines = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        best = [
            (max(row["settings"], key=lambda setting: statistics.fmean(setting["validation"])), row["kind"])
            for row in rows
            if row["dataset"] == name
        ]
        for setting, kind in sorted(best, key=lambda pair: -statistics.fmean(pair[0]["validation"])):
            means = (statistics.fmean(setting[key]) for key in ("validation", "test"))
            lines.append(f"{name}, {kind}: validation {next(means):.1f}, test {next(means):.1f}")
    return lines


def main() -> None:
    """Measure what the file does not have yet."""
    options = usual_options(__doc__, SETS, 5, "blocks_and_rates.json")
    jobs = [
        {"dataset": name, "kind": kind, "splits": options.splits}
        for name in options.datasets
        for kind in KINDS
    ]
    print("\n".join(summary(complete(options.json_out, jobs, partial(measure, root=options.root)))))


if __name__ == "__main__":
    main()
