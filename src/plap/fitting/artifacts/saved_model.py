"""A trained model as two files: weights as safetensors, the rest as JSON; nothing is ever unpickled.

Whether the files are those that plap wrote, the folder's manifest says; here their content is checked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from plap import __version__
from plap.data.columns import ColumnTransform
from plap.data.tasks import TASKS, Task
from plap.errors import InputError

FORMAT = "plap-model"
FORMAT_VERSION = 4
_READABLE = (3, FORMAT_VERSION)
"""3 had one configuration for all members."""
_COLUMNS = "columns."
"""What the names of tensors begin with that belong to the columns of a table."""


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model, or an ensemble of several, and what it was made for."""

    config: Mapping[str, Any]
    """How to build it; only what JSON has. Of an ensemble of several configurations, the winner's."""
    states: Sequence[Mapping[str, Tensor]]
    """The weights of each member of the ensemble."""
    task: Task
    """What it predicts, and the names of its classes: strings, integers or booleans."""
    num_features: int
    feature_names: tuple[str, ...] | None = None
    graph_digest: str = ""
    features_digest: str = ""
    columns: ColumnTransform | None = None
    """What raw columns of a table become, where the features are made of such."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """Which column of the tables was what; see :meth:`plap.data.tables.options.TableOptions.stored`."""
    relations: Mapping[str, float] = field(default_factory=dict)
    """What the edges of each relation are multiplied by, where there are several."""
    weighted: bool | None = None
    """Whether the edges of the fit had weights; None: a model of an earlier plap."""
    named: bool | None = None
    """Whether the nodes of the fit had names; None: a model of an earlier plap."""
    mean_neighbours: float | None = None
    """Neighbours of a node on average, in the graph of the fit."""
    configs: Sequence[Mapping[str, Any]] = ()
    """How to build each member; empty if all of them are built by ``config``."""
    text_labels: bool = False
    """Whether labels were text, even where it is the text of integers; tables and graphs leave that open."""
    versions: Mapping[str, str] = field(default_factory=lambda: dict(current_versions()))
    """Of plap, PyTorch and NumPy when it was written."""
    path: Path | None = None
    """Where it was read from."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """The names of its classes, in the order of its outputs."""
        return self.task.class_names

    def check_features(self, count: int, names: Sequence[str] | None = None) -> None:
        """Refuse features that the model was not made for.

        Parameters
        ----------
        count : int
            Columns of the features.
        names : sequence of str, optional
            Their names, compared where both sides have them.
        """
        where = f"{self.path}: the model" if self.path else "the model"
        if self.feature_names is not None and names is not None:
            mine, others = self.feature_names, tuple(names)
            missing = sorted(set(mine) - set(others))
            extra = sorted(set(others) - set(mine))
            if missing:
                raise InputError(f"{where} needs the feature {missing[0]!r}, which the graph does not have")
            if extra:
                raise InputError(f"{where} was not made for the feature {extra[0]!r} of the graph")
            if mine != others:
                at = next(k for k, (a, b) in enumerate(zip(mine, others, strict=False)) if a != b)
                raise InputError(
                    f"{where} needs its features in another order: "
                    f"column {at + 1} is {mine[at]!r}, not {others[at]!r}"
                )
        if count != self.num_features:
            raise InputError(f"{where} was made for {self.num_features} features, and the graph has {count}")

    def encode(self) -> tuple[bytes, bytes]:
        """The contents of ``model.json`` and ``model.safetensors``."""
        tensors = {
            f"{k}/{name}": tensor.detach().cpu().contiguous().clone()
            for k, state in enumerate(self.states)
            for name, tensor in state.items()
        }
        arrays = {} if self.columns is None else self.columns.tensors()
        tensors |= {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        for name, tensor in tensors.items():
            if not _is_finite(tensor):
                raise InputError(f"the weight {name!r} of the model is not finite")
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "config": plain(self.config),
            "configs": plain(self.configs),
            "members": len(self.states),
            "classes": plain(self.classes),
            "task": self.task.name,
            "task_settings": plain(self.task.settings()),
            "num_features": self.num_features,
            "feature_names": None if self.feature_names is None else plain(self.feature_names),
            "graph_digest": self.graph_digest,
            "features_digest": self.features_digest,
            "columns": None if self.columns is None else self.columns.to_json(),
            "table": plain(self.table),
            "relations": plain(self.relations),
            "weighted": self.weighted,
            "named": self.named,
            "mean_neighbours": self.mean_neighbours,
            "text_labels": self.text_labels,
            "versions": plain(self.versions),
            "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
        }
        text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
        return text.encode() + b"\n", save(tensors)

    @classmethod
    def decode(cls, header_bytes: bytes, weights: bytes, folder: Path) -> SavedModel:
        """Read what :meth:`encode` wrote, and refuse anything else with one sentence."""
        path = folder / "model.json"
        header = _read_header(header_bytes, path)
        names = header["feature_names"]
        tensors = _tensors(weights, header, folder / "model.safetensors")
        arrays = {name: tensors.pop(name).numpy() for name in list(tensors) if name.startswith(_COLUMNS)}
        weighted, named = header.get("weighted"), header.get("named")
        for key, flag in (("weighted", weighted), ("named", named)):
            if not isinstance(flag, bool | None):
                _refuse(path, f"the key {key!r} holds {type(flag).__name__}")
        return cls(
            config=header["config"],
            states=_states(tensors, header, folder / "model.safetensors"),
            task=_task(header, path),
            num_features=header["num_features"],
            feature_names=None if names is None else tuple(names),
            graph_digest=header["graph_digest"],
            features_digest=header["features_digest"],
            columns=_columns(header["columns"], arrays, path),
            table=header["table"],
            relations=header["relations"],
            weighted=weighted,
            named=named,
            mean_neighbours=header["mean_neighbours"],
            configs=_configs(header, path),
            text_labels=header.get("text_labels") is True,
            versions=header["versions"],
            path=folder,
        )


def _configs(header: dict[str, Any], path: Path) -> tuple[dict[str, Any], ...]:
    """The configurations of the members; a file of an earlier plap has one for all."""
    configs = header.get("configs", [])
    if not isinstance(configs, list) or not all(isinstance(config, dict) for config in configs):
        _refuse(path, "the key 'configs' must hold a list of configurations")
    if configs and len(configs) != header["members"]:
        _refuse(path, f"there are {len(configs)} configurations for {header['members']} members")
    return tuple(configs)


def _task(header: dict[str, Any], path: Path) -> Task:
    """What the model predicts; a file of an earlier plap has no settings of it."""
    settings = header.get("task_settings", {})
    if not isinstance(settings, dict):
        _refuse(path, f"the key 'task_settings' holds {type(settings).__name__}")
    try:
        return TASKS[header["task"]].from_settings(tuple(header["classes"]), settings)
    except InputError as error:
        _refuse(path, str(error))


_FIELDS: dict[str, type | tuple[type, ...]] = {
    "config": dict,
    "members": int,
    "classes": list,
    "task": str,
    "num_features": int,
    "feature_names": (list, type(None)),
    "graph_digest": str,
    "features_digest": str,
    "columns": (dict, type(None)),
    "table": dict,
    "relations": dict,
    "mean_neighbours": (float, int, type(None)),
    "versions": dict,
    "shapes": dict,
}


def _read_header(content: bytes, path: Path) -> dict[str, Any]:
    """``model.json`` as a dictionary with every key in place and of its type."""
    try:
        header = json.loads(content)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        _refuse(path, "it is not JSON; the file is damaged or was not written by plap")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        _refuse(path, "it was not written by plap")
    version = header.get("format_version")
    if version not in _READABLE:
        read = " and ".join(map(str, _READABLE))
        _refuse(path, f"it has format version {version!r}, but this plap reads {read}: fit it again")
    for name, kind in _FIELDS.items():
        if name not in header:
            _refuse(path, f"the key {name!r} is missing")
        if not isinstance(header[name], kind):
            _refuse(path, f"the key {name!r} holds {type(header[name]).__name__}")
    if header["task"] not in TASKS:
        _refuse(path, f"its task is {header['task']!r}, and this plap knows {', '.join(TASKS)}")
    return header


def plain(value: Any) -> Any:
    """Only what JSON has: NaN and infinity become null, arrays and tensors lists, keys strings.

    Examples
    --------
    >>> plain({1: (np.float64(0.5), float("nan")), "x": torch.tensor([1, 2])})
    {'1': [0.5, None], 'x': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)


def current_versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    return {"plap": __version__, "torch": torch.__version__, "numpy": np.__version__}


def _tensors(weights: bytes, header: dict[str, Any], path: Path) -> dict[str, Tensor]:
    """All tensors of ``model.safetensors``, which must be those that ``model.json`` lists."""
    try:
        tensors = load(weights)
    except SafetensorError as error:
        _refuse(path, f"it is damaged ({error})")
    if {name: list(tensor.shape) for name, tensor in tensors.items()} != header["shapes"]:
        _refuse(path, "its tensors are not those that model.json lists")
    for name, tensor in tensors.items():
        if not _is_finite(tensor):
            _refuse(path, f"the tensor {name!r} is not finite")
    return tensors


def _states(
    tensors: Mapping[str, Tensor], header: dict[str, Any], path: Path
) -> tuple[Mapping[str, Tensor], ...]:
    """The weights of each member."""
    states: list[dict[str, Tensor]] = [{} for _ in range(header["members"])]
    for name, tensor in tensors.items():
        member, _, key = name.partition("/")
        if not member.isdecimal() or int(member) >= len(states):
            _refuse(path, f"the tensor {name!r} belongs to no member of the ensemble")
        states[int(member)][key] = tensor
    return tuple(states)


def _columns(
    description: dict[str, Any] | None, arrays: dict[str, np.ndarray], path: Path
) -> ColumnTransform | None:
    if description is None:
        return None
    try:
        return ColumnTransform.from_json(description, arrays)
    except InputError as error:
        _refuse(path, str(error))


def _is_finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())


def _refuse(path: Path, problem: str) -> NoReturn:
    raise InputError(f"{path} cannot be read: {problem}") from None
