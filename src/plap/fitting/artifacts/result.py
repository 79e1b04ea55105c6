"""Everything that ``plap fit`` leaves in its output folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plap.fitting.artifacts.folder import Content, read_files, replace_folder
from plap.fitting.artifacts.predictions import Predictions
from plap.fitting.artifacts.saved_model import SavedModel, plain

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
