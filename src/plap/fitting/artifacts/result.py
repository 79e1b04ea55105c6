"""Everything that ``plap fit`` leaves in its output folder: predictions, model, scores and page."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars
import torch
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from plap.data.tasks import Multiclass, Regression, Task
from plap.errors import InputError
from plap.fitting.artifacts.folder import Content, read_files, replace_folder
from plap.fitting.artifacts.saved_model import SavedModel, plain

ROLES = ("train", "val", "test", "unlabelled")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities of every node, beside what was known of it.

    Examples
    --------
    >>> from plap.data.tasks import Multiclass
    >>> task = Multiclass(("cat", "dog"))
    >>> table = Predictions([10, 20], task, np.array([[0.9, 0.1], [0.3, 0.7]]), ["train", "test"])
    >>> table.predicted
    ['cat', 'dog']
    """

    node_ids: Sequence[Any]
    task: Task
    probabilities: NDArray[np.floating[Any]]
    """[N, classes]; rows sum to 1 where each node has one class. For numbers, the predictions [N, 1]."""
    roles: Sequence[str]
    """"train", "val", "test" or "unlabelled", one per node."""
    known: NDArray[np.integer[Any]] | NDArray[np.floating[Any]] | None = None
    """Labels as the task has them: class numbers [N], −1 where unknown; 0 and 1 [N, classes], NaN where
    unknown; or numbers [N], NaN where unknown."""
    new: NDArray[np.bool_] | None = None
    """Which nodes the model was not fitted on, where that is known."""
    notes: tuple[str, ...] = ()
    """What was noticed about a graph that the model was not fitted on: odd cells, columns and edges that
    drifted."""
    drift: Mapping[str, Any] = field(default_factory=dict)
    """How far columns and edges of such a graph are from those of the fit, in numbers."""
    same_rows: Callable[[int], bool | None] | None = None
    """Where nodes have no names: whether the first so many rows are those of the fit, as far as features and
    edges tell; see ``plap.fitting.prediction.with_roles``."""

    def __post_init__(self) -> None:
        shape = (len(self.node_ids), self.task.num_outputs)
        if self.probabilities.shape != shape:
            raise InputError(
                f"probabilities must have shape {list(shape)}, not {list(self.probabilities.shape)}"
            )
        if len(self.roles) != shape[0]:
            raise InputError(f"there are {len(self.roles)} roles for {shape[0]} nodes")
        if not np.isfinite(self.probabilities).all():
            raise InputError("probabilities must be finite")
        if strange := set(self.roles) - set(ROLES):
            raise InputError(f"role {sorted(strange)[0]!r} is none of {', '.join(ROLES)}")

    def __repr__(self) -> str:
        """Number of nodes and the task; ``frame()`` shows the rest."""
        return f"Predictions({len(self.node_ids)} nodes, {self.task.name}; .frame() is a table)"

    @property
    def predicted(self) -> list[str | None]:
        """The likeliest class of every node, or all its labels."""
        return self.task.words(self.task.decode(torch.from_numpy(self.probabilities)))

    @property
    def truth(self) -> list[str | None]:
        """The known labels, None where there is none."""
        if self.known is None:
            return [None] * len(self.node_ids)
        return self.task.words(torch.from_numpy(self.known))

    def frame(self) -> polars.DataFrame:
        """The table that ``predictions.csv`` and ``predictions.parquet`` hold.

        ``node``, ``role``, ``known`` and ``predicted``; for classes the probability of the predicted one and
        of each, and the prediction set if there are such; for numbers the ends of the interval. ``new`` where
        it is known which nodes the model was not fitted on.
        """
        task, said = self.task, torch.from_numpy(self.probabilities)
        if isinstance(task, Regression):
            return self._numbers(task, said)
        columns: dict[str, Any] = {
            "node": list(self.node_ids),
            "role": list(self.roles),
            "known": polars.Series(self.truth, dtype=polars.String),
            "predicted": self.predicted,
        }
        if isinstance(task, Multiclass):
            chosen = task.decode(said).numpy()
            columns["probability"] = (
                np.take_along_axis(self.probabilities, chosen[:, None], 1)[:, 0] if task.num_outputs else 0.0
            )
            sets = task.sets(said)
            if sets is not None:
                columns["set"] = _set_words(task, sets)
        for k, name in enumerate(self.task.class_names):
            columns[f"probability_{name}"] = np.ascontiguousarray(self.probabilities[:, k])
        return polars.DataFrame(columns | self._whether_new)

    def _numbers(self, task: Regression, said: torch.Tensor) -> polars.DataFrame:
        known = np.full(len(self.node_ids), np.nan) if self.known is None else self.known
        columns: dict[str, Any] = {
            "node": list(self.node_ids),
            "role": list(self.roles),
            "known": polars.Series(known).cast(polars.Float64).fill_nan(None),
            "predicted": task.decode(said).double().numpy(),
        }
        ends = task.intervals(said)
        if ends is not None:
            columns["lower"], columns["upper"] = (end.double().numpy() for end in ends)
        return polars.DataFrame(columns | self._whether_new)

    @property
    def _whether_new(self) -> dict[str, Any]:
        return {} if self.new is None else {"new": self.new}

    def only_new(self) -> Predictions:
        """The rows of nodes that the model was not fitted on."""
        if self.new is None:
            raise InputError("which nodes are new is not known, because the fit's own predictions are gone")
        rows = np.flatnonzero(self.new).tolist()
        return replace(
            self,
            node_ids=[self.node_ids[row] for row in rows],
            probabilities=self.probabilities[rows],
            roles=[self.roles[row] for row in rows],
            known=None if self.known is None else self.known[rows],
            new=self.new[rows],
        )

    def write_csv(self, stream: IO[bytes]) -> None:
        """Write the table as CSV, probabilities to six decimals."""
        with _os_errors():
            self.frame().write_csv(stream, float_precision=6)

    def write_parquet(self, stream: IO[bytes]) -> None:
        """Write the table as Parquet."""
        with _os_errors():
            self.frame().write_parquet(stream)


def _set_words(task: Multiclass, sets: torch.Tensor) -> list[str]:
    """The classes of each set, written as several labels are."""
    patterns, which = sets.unique(dim=0, return_inverse=True)
    names = [str(name) for name in task.class_names]
    words = [
        "; ".join(name for name, there in zip(names, row, strict=True) if there) for row in patterns.tolist()
    ]
    return [words[k] for k in which.tolist()]


@contextlib.contextmanager
def _os_errors() -> Iterator[None]:
    """Give back the error number that Polars hides in its text, so that a full disk is known as such."""
    try:
        yield
    except (OSError, PolarsError) as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


_PAGE = 2_000_000
"""Bytes of a page of results, generously."""


@dataclass(frozen=True, eq=False)
class ResultFiles:
    """The contents of an output folder, apart from its manifest."""

    predictions: Predictions
    model: SavedModel
    metrics: Mapping[str, Any]
    report: str
    """The page, HTML."""

    def files(self) -> dict[str, Content]:
        """Every file by its name."""
        header, weights = self.model.encode()
        metrics = json.dumps(plain(self.metrics), indent=1, ensure_ascii=False, allow_nan=False)
        return {
            "predictions.csv": self.predictions.write_csv,
            "predictions.parquet": self.predictions.write_parquet,
            "model.safetensors": weights,
            "model.json": header,
            "metrics.json": metrics.encode() + b"\n",
            "report.html": self.report.encode(),
        }


def write_result(out: Path | str, result: ResultFiles, *, flag: str = "--out") -> Path:
    """Write a result whole or not at all; an earlier result of plap in ``out`` is replaced in one step.

    A full disk, a read-only place, or a folder with other files in it raise :class:`plap.InputError` and
    leave everything as it was.
    """
    return replace_folder(out, result.files(), flag=flag)


def load_model(out: Path | str) -> SavedModel:
    """Read the model of an output folder and check all of it: digests, format, shapes, finite weights."""
    header, weights = read_files(out, ("model.json", "model.safetensors"))
    return SavedModel.decode(header, weights, Path(out))


def load_metrics(out: Path | str) -> dict[str, Any]:
    """Read ``metrics.json`` of an output folder."""
    (content,) = read_files(out, ("metrics.json",))
    metrics: dict[str, Any] = json.loads(content)
    return metrics


def estimate_size(nodes: int, classes: int, parameters: int, id_length: int = 16) -> int:
    """Bytes that a result will need, rather too many than too few."""
    row = 2 * (id_length + 40 + 9 * (classes + 1))
    return nodes * row + 8 * parameters + _PAGE
