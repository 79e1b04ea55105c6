"""What a run is, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plap.data.dataset_name import DatasetName
from plap.experiments.model_files import ModelFile, load_model_file
from plap.training import RunConfig

KEY_VERSION = 2
"""Of the keys of runs, and of the store that keeps them. One more wherever a default value changes."""


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
    correct_and_smooth: bool = False
    """Whether predictions are corrected and smoothed with the training labels before they are scored."""


@dataclass(frozen=True)
class Run:
    """One training: everything that its result depends on."""

    setting: Setting
    model: str
    """The row's key; the run is the same whatever a table calls it."""
    config: RunConfig
    code_digest: str = ""
    """Of a user's own model."""

    @cached_property
    def key(self) -> str:
        """Equal for equal runs, whatever table they are part of."""
        defaults = RunConfig(self.config.model).to_dict()
        return run_key(self.setting, self.code_digest, self.config.to_dict(), defaults)


def run_key(
    setting: Setting, code_digest: str, config: Mapping[str, Any], defaults: Mapping[str, Any]
) -> str:
    """A digest of all that a run's result depends on.

    Values that are the defaults are left out, so that fields which a model gets later do not make old runs
    new; ``model`` always stays.
    """
    data = asdict(setting)
    if setting.files_digest:  # wherever the files lie
        data["dataset"] = str(DatasetName.parse(setting.dataset).bare)
    identity = {
        "version": KEY_VERSION,
        "setting": data,
        "code": code_digest,
        "config": {
            name: value
            for name, value in config.items()
            if name == "model" or name not in defaults or value != defaults[name]
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

    def run(self, config: RunConfig) -> Run:
        """The run of one of the configurations."""
        return Run(self.setting, self.model, config, self.model_file.digest if self.model_file else "")

    def pack(self) -> PackedJob:
        """The job as it is sent to another process, which does not know a user's model yet."""
        values = tuple(config.to_dict() for config in self.configs)
        return PackedJob(self.setting, self.model, self.model_file, values)


@dataclass(frozen=True)
class PackedJob:
    """A job whose configurations are plain values."""

    setting: Setting
    model: str
    model_file: ModelFile | None
    values: tuple[dict[str, Any], ...]

    def unpack(self) -> Job:
        """The job, after the model that it is about has been registered here."""
        if self.model_file is not None:
            load_model_file(self.model_file)
        return Job(self.setting, self.model, self.model_file, tuple(map(RunConfig.from_dict, self.values)))


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
