"""Everything that ``plap fit`` leaves in its output folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plap.artifacts.folder import Content, recover, replace_folder, unchanged
from plap.artifacts.model_file import ModelFile
from plap.artifacts.plain import plain
from plap.artifacts.predictions import Predictions
from plap.errors import InputError

_PAGE = 2_000_000
"""Bytes of a page of results, generously."""
_ATTEMPTS = 20


@dataclass(frozen=True, eq=False)
class Result:
    """The contents of an output folder."""

    predictions: Predictions
    model: ModelFile
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


def write_result(out: Path | str, result: Result, *, flag: str = "--out") -> Path:
    """Write a result whole or not at all; an earlier result of plap in ``out`` is replaced in one step.

    A full disk, a read-only place, or a folder with other files in it raise :class:`plap.InputError` and
    leave everything as it was.
    """
    return replace_folder(out, result.files(), flag=flag)


def load_model(out: Path | str) -> ModelFile:
    """Read the model of an output folder and check all of it: format, digests, shapes, finite weights."""
    folder = Path(out)
    header, weights = _read_together(folder, ("model.json", "model.safetensors"))
    return ModelFile.decode(header, weights, folder)


def load_metrics(out: Path | str) -> dict[str, Any]:
    """Read ``metrics.json`` of an output folder."""
    path = Path(out) / "metrics.json"
    (content,) = _read_together(Path(out), ("metrics.json",))
    try:
        metrics = json.loads(content)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise InputError(f"{path} cannot be read: it is not JSON; the file is damaged") from None
    if not isinstance(metrics, dict):
        raise InputError(f"{path} cannot be read: it was not written by plap")
    return metrics


def estimate_size(nodes: int, classes: int, parameters: int, id_length: int = 16) -> int:
    """Bytes that a result will need, rather too many than too few."""
    row = 2 * (id_length + 40 + 9 * (classes + 1))
    return nodes * row + 8 * parameters + _PAGE


def _read_together(folder: Path, names: tuple[str, ...]) -> list[bytes]:
    """Files of one and the same result, also while another process replaces the folder."""
    recover(Path(os.path.realpath(folder)))
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder" if folder.exists() else f"{folder} does not exist")
    missing = ""
    for _ in range(_ATTEMPTS):
        contents: list[bytes] = []
        with unchanged(folder) as still:
            try:
                for missing in names:
                    contents.append((folder / missing).read_bytes())
            except FileNotFoundError:
                pass
            except OSError as error:
                raise InputError(f"{folder / missing} cannot be read ({error.strerror})") from None
            same = still()
        if same and len(contents) == len(names):
            return contents
        if same:
            break
    raise InputError(f"{folder / missing} is missing: {folder} holds no result of plap")
