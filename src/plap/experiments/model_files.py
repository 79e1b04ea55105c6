"""A user's model: one Python file, whose text is sent wherever its runs are trained."""

from __future__ import annotations

import hashlib
import linecache
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from plap.errors import InputError
from plap.models import ModelKind, Parameters, integer, register_model, share
from plap.models.registry import check_model
from plap.training import RunConfig
from plap.training.config import OF_TRAINING, unknown_field


@dataclass(frozen=True)
class UserModelFile:
    """A Python file with its text, because a worker on another machine does not have the file."""

    path: str
    """Only shown in messages."""
    code: str

    @property
    def digest(self) -> str:
        """SHA-256 of the code: runs of changed code are different runs."""
        return hashlib.sha256(self.code.encode()).hexdigest()

    @property
    def registered_name(self) -> str:
        """Name of the model in a run's configuration; it differs from the names of plap's own models."""
        return f"{Path(self.path).name}@{self.digest[:16]}"

    @classmethod
    def read(cls, path: Path) -> UserModelFile:
        """Read the file, without running it."""
        try:
            return cls(str(path), path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror})") from None
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not a text file ({error.reason})") from None


@dataclass(frozen=True)
class HiddenAndDropout(Parameters):
    """Parameters of a file that does not define its own."""

    hidden: int = integer(16)
    """Hidden units."""
    dropout: float = share(0.5)
    """Share of the hidden units that are dropped in training."""


@dataclass(frozen=True)
class LoadedModel:
    """What a file defines."""

    kind: ModelKind[Any]
    """Registered, with the file's ``GRID`` and ``PARAMETERS``."""
    fixed: Mapping[str, Any]
    """The file's ``FIXED``."""


@cache
def load_model_file(file: UserModelFile) -> LoadedModel:
    """Run the code and register the model that it defines.

    ``build(parameters, in_channels, out_channels)`` makes the module. ``PARAMETERS`` is the model's own
    frozen dataclass, derived from :class:`plap.models.Parameters`; without it there are ``hidden`` and
    ``dropout``.
    ``GRID`` names values to search and ``FIXED`` values that stay, of the model's parameters or of training;
    ``TAKES`` is ``"edge_index"`` or ``"graph"``.
    """
    module = _run(file)
    build = getattr(module, "build", None)
    if not callable(build):
        raise InputError(f"{file.path} must define build(parameters, in_channels, out_channels)")
    grid = {name: _values(file, name, value) for name, value in _settings(file, module, "GRID").items()}
    fixed = _settings(file, module, "FIXED")
    try:
        kind = ModelKind(
            file.registered_name,
            parameters=getattr(module, "PARAMETERS", HiddenAndDropout),
            build=build,
            title=Path(file.path).stem,
            grid=grid,
            takes=getattr(module, "TAKES", "edge_index"),
        )
        check_model(kind)
        for name, values in [*((name, (value,)) for name, value in fixed.items()), *grid.items()]:
            for value in values:
                _check_value(kind, name, value)
        register_model(kind, replace=True)
    except InputError as error:
        raise InputError(f"{file.path}: {error}") from None
    return LoadedModel(kind, fixed)


def _run(file: UserModelFile) -> ModuleType:
    """The file as a registered module, since PyG and ``inspect`` look up the module and source of a class."""
    name = f"plap_model_{file.digest[:16]}"
    module = ModuleType(name)
    module.__file__ = file.path
    sys.modules[name] = module
    lines = file.code.splitlines(keepends=True)
    linecache.cache[file.path] = (len(file.code), None, lines, file.path)
    try:
        exec(compile(file.code, file.path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InputError(f"{file.path} cannot be run: {type(error).__name__}: {error}") from error
    return module


def _settings(file: UserModelFile, module: ModuleType, name: str) -> dict[str, Any]:
    settings = getattr(module, name, {})
    if not isinstance(settings, Mapping):
        raise InputError(f"{file.path}: {name} must be a dictionary, not {settings!r}")
    for name_of_table in settings.keys() & {"model", "parameters", "seed"}:
        raise InputError(f"{file.path}: {name} cannot have {name_of_table!r}, which the table decides")
    return dict(settings)


def _check_value(kind: ModelKind[Any], name: str, value: Any) -> None:
    """Refuse what no run can have, before there is a model that could be run."""
    if name in kind.fields:
        kind.parameters(**{name: value})
    elif name in OF_TRAINING:
        RunConfig(**{name: value})
    else:
        raise InputError(unknown_field(kind, name))


def _values(file: UserModelFile, name: str, value: object) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values:
        raise InputError(f"{file.path}: GRID has no value for {name!r}")
    return values
