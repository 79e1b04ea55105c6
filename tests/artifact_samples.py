"""Small results to write and read; every part of one carries the same number, so that a mixture shows."""

from __future__ import annotations

import itertools
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import polars
import torch

from plap.data.tasks import Multiclass
from plap.fitting.artifacts import (
    Predictions,
    ResultFiles,
    SavedModel,
    load_metrics,
    load_model,
    write_result,
)

NODES = 300
TASK = Multiclass(("cat", "dog", "élan"))


def model(number: int = 1, **changes: Any) -> SavedModel:
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
    return SavedModel(**(arguments | changes))


def result(number: int = 1) -> ResultFiles:
    probabilities = np.full((NODES, 3), number / 1000)
    probabilities[:, 1] = 0.9
    return ResultFiles(
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


def write_forever(out: str, told: Connection | None = None) -> None:
    """Replace a result again and again, until somebody ends it; ``told`` hears when the first is written."""
    for number in itertools.cycle(range(1, 901)):
        write_result(out, result(number))
        if told is not None:
            told.send(number)
            told = None


def write_and_die(out: str, renames: int) -> None:
    """Write a result, and be killed after so many renames, or before the first."""
    rename, count = Path.rename, itertools.count(1)

    def die(self: Path, target: Path) -> Path:
        if not renames:
            os.kill(os.getpid(), signal.SIGKILL)
        moved = rename(self, target)
        if next(count) == renames:
            os.kill(os.getpid(), signal.SIGKILL)
        return moved

    Path.rename = die  # type: ignore[assignment, method-assign]
    write_result(out, result(2))
