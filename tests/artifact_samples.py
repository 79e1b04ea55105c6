"""Small results to write and read; every part of one carries the same number, so that a mixture shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import torch

from plap.artifacts import ModelFile, Predictions, Result, load_metrics, load_model, write_result
from plap.data.tasks import Multiclass

NODES = 300
TASK = Multiclass(("cat", "dog", "élan"))


def model(number: int = 1, **changes: Any) -> ModelFile:
    state = {"lin.weight": torch.full((16, 5), float(number)), "lin.bias": torch.arange(16.0)}
    arguments: dict[str, Any] = {
        "config": {"model": "pgnn", "p": 1.5, "mu": 0.1, "K": 4, "number": number},
        "states": (state, {name: -value for name, value in state.items()}),
        "task": TASK,
        "num_features": 5,
        "feature_names": ("a", "b", "c", "d", "e"),
        "graph_digest": "12ab",
        "features_digest": "34cd",
    }
    return ModelFile(**(arguments | changes))


def result(number: int = 1) -> Result:
    probabilities = np.full((NODES, 3), number / 1000)
    probabilities[:, 1] = 0.9
    return Result(
        Predictions(list(range(NODES)), TASK, probabilities, ["test"] * NODES),
        model(number),
        {"number": number},
        f"<!doctype html><p>{number}</p>",
    )


def number_in(out: Path) -> int:
    """The one number that every file of a complete result carries."""
    found = load_model(out)
    numbers = {
        found.config["number"],
        float(found.states[0]["lin.weight"].mean()),
        load_metrics(out)["number"],
        int((out / "report.html").read_text().split("<p>")[1].split("<")[0]),
        round(1000 * float(polars.read_csv(out / "predictions.csv")["probability_cat"][-1])),
        round(1000 * float(polars.read_parquet(out / "predictions.parquet")["probability_cat"][-1])),
    }
    assert len(numbers) == 1, numbers
    assert polars.read_csv(out / "predictions.csv").height == NODES
    return int(numbers.pop())


def write_forever(out: str) -> None:
    """Replace a result again and again, until somebody ends it."""
    number = 0
    while True:
        number = number % 900 + 1
        write_result(out, result(number))
