"""What a run is, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plap.experiments.model_files import ModelFile
from plap.experiments.own_files import bare_name
from plap.training import RunConfig

_DEFAULTS = RunConfig().to_dict()
"""Left out of a run's key, so that settings which later versions add do not make old runs new."""


@dataclass(frozen=True)
class Setting:
    """What a cell's runs have in common, besides the model: the rules and the data."""

    protocol: str
    dataset: str
    split: str
    """``sparse``, ``dense`` or ``public``."""
    alone: bool = False
    """Whether runs are trained one at a time on all cores, for their time."""
    files_digest: str = ""
    """Of a user's own dataset: what its files held."""


@dataclass(frozen=True)
class Run:
    """One training: everything that its result depends on."""

    setting: Setting
    model: str
    """The row's name."""
    config: RunConfig
    code_digest: str = ""
    """Of a user's own model."""

    @cached_property
    def key(self) -> str:
        """Equal for equal runs, whatever table they are part of."""
        setting = asdict(self.setting)
        if self.setting.files_digest:  # wherever the files lie
            setting["dataset"] = bare_name(self.setting.dataset)
        identity = {
            "setting": setting,
            "model": [self.model, self.code_digest],
            "config": {
                name: value for name, value in self.config.to_dict().items() if value != _DEFAULTS[name]
            },
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Job:
    """Runs of one cell that a worker trains together."""

    setting: Setting
    model: str
    model_file: ModelFile | None
    """What defines a user's model."""
    configs: tuple[RunConfig, ...]
    correct_and_smooth: bool = False

    def run(self, config: RunConfig) -> Run:
        """The run of one of the configurations."""
        return Run(self.setting, self.model, config, self.model_file.digest if self.model_file else "")


@dataclass(frozen=True)
class Record:
    """A finished run as it is stored."""

    run: Run
    split_digest: str
    data_digest: str
    metric: str
    """The headline metric's label: ``accuracy`` or ``micro-F1``."""
    test_score: float
    """From 0 to 1."""
    val_score: float
    val_loss: float
    best_epoch: int
    epochs: int
    seconds: float
    finite: bool
    """Whether loss and logits were finite to the end."""
    history: bytes
    """Training loss, validation loss and score of every epoch, see :func:`unpack_history`."""
    versions: tuple[tuple[str, str], ...]


def pack_history(columns: np.ndarray[Any, Any]) -> bytes:
    """Float32 [3, epochs], compressed."""
    return zlib.compress(np.ascontiguousarray(columns, dtype="<f4").tobytes())


def unpack_history(packed: bytes) -> np.ndarray[Any, Any]:
    """What :func:`pack_history` was given, [3, epochs]: training loss, validation loss, validation score.

    Examples
    --------
    >>> unpack_history(pack_history(np.ones((3, 5)))).shape
    (3, 5)
    """
    return np.frombuffer(zlib.decompress(packed), dtype="<f4").reshape(3, -1)
