"""What a run is, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from plap.data.dataset import DatasetName
from plap.errors import InputError
from plap.experiments.model_files import UserModelFile, load_model_file
from plap.training import RunConfig

CellKey = tuple[str, str]
"""Dataset and row of a cell."""
KEY_VERSION = 2
"""Version of the keys of runs and of the store; to be increased whenever a default value changes."""


@dataclass(frozen=True)
class Setting:
    """What the runs of a cell have in common besides the model: the rules and the data."""

    protocol: str
    dataset: str
    split: str
    """``sparse``, ``dense`` or ``public``."""
    alone: bool = False
    """Whether runs are trained one at a time on all cores, for their time."""
    files_digest: str = ""
    """Digest of the files of a user's own dataset, see :func:`files_digest`."""
    correct_and_smooth: bool = False
    """Whether predictions are corrected and smoothed with the training labels before they are scored."""


def files_digest(dataset: str) -> str:
    """SHA-256 over the files of a dataset that is a path; empty for a benchmark, which never changes.

    Results of changed files are not taken for those of the old ones.

    Examples
    --------
    >>> files_digest("texas")
    ''
    """
    name = DatasetName.parse(dataset)
    path = Path(dataset) if Path(dataset).exists() else Path(name.base)
    if not name.is_path or not path.exists():
        return ""
    files = [path] if path.is_file() else sorted(entry for entry in path.rglob("*") if entry.is_file())
    sha = hashlib.sha256()
    for file in files:
        sha.update(f"{file.relative_to(path.parent)}\0".encode())
        try:
            with file.open("rb") as stream:
                sha.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror})") from None
    return sha.hexdigest()


@dataclass(frozen=True)
class Run:
    """Training a model once: everything that the result depends on."""

    setting: Setting
    model: str
    """The row's key; it does not identify the run, which may be part of other tables under other names."""
    config: RunConfig
    code_digest: str = ""
    """Digest of the code of a user's own model."""

    @cached_property
    def key(self) -> str:
        """Equal for equal runs, whatever table they are part of."""
        defaults = RunConfig(self.config.model).to_dict()
        return run_key(self.setting, self.code_digest, self.config.to_dict(), defaults)


def run_key(
    setting: Setting, code_digest: str, config: Mapping[str, Any], defaults: Mapping[str, Any]
) -> str:
    """A digest of everything that a run's result depends on.

    Default values are left out, so that a field which is added to a model later does not change the keys of
    its older runs; ``model`` is always included.
    """
    data = asdict(setting)
    if setting.files_digest:  # the same files in another folder are the same data
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
    model_file: UserModelFile | None
    """Defines the model, if it is a user's own."""
    configs: tuple[RunConfig, ...]
    device: str = "cpu"
    """Where to train; not part of what a run is."""

    @property
    def cell(self) -> CellKey:
        """The cell that the runs belong to."""
        return self.setting.dataset, self.model

    def run(self, config: RunConfig) -> Run:
        """The run of one of the configurations."""
        return Run(self.setting, self.model, config, self.model_file.digest if self.model_file else "")

    def pack(self) -> PackedJob:
        """The job in the form that is sent to a process in which a user's model is not registered yet."""
        values = tuple(config.to_dict() for config in self.configs)
        return PackedJob(self.setting, self.model, self.model_file, values, self.device)


@dataclass(frozen=True)
class PackedJob:
    """A job whose configurations are plain values."""

    setting: Setting
    model: str
    model_file: UserModelFile | None
    values: tuple[dict[str, Any], ...]
    device: str

    def unpack(self) -> Job:
        """The job, after the model that it is about has been registered here."""
        if self.model_file is not None:
            load_model_file(self.model_file)
        configs = tuple(map(RunConfig.from_dict, self.values))
        return Job(self.setting, self.model, self.model_file, configs, self.device)


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
