"""A user's model: one Python file, which goes wherever its runs go."""

from __future__ import annotations

import hashlib
import linecache
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from plap.errors import InputError
from plap.experiments.models import ModelSpec
from plap.training import ModelKind, RunConfig, register_model


@dataclass(frozen=True)
class ModelFile:
    """The file's text: a worker on another machine has no such file."""

    path: str
    """For messages."""
    code: str

    @property
    def digest(self) -> str:
        """Runs of changed code are other runs."""
        return hashlib.sha256(self.code.encode()).hexdigest()

    @property
    def registered_name(self) -> str:
        """What a run's configuration calls the model; no model of plap is called so."""
        return f"{Path(self.path).name}@{self.digest[:16]}"

    @classmethod
    def read(cls, path: Path) -> ModelFile:
        """Read the file, without running it."""
        try:
            return cls(str(path), path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror})") from None
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not a text file ({error.reason})") from None


@cache
def spec_of_file(file: ModelFile) -> ModelSpec:
    """Run the code and register what its ``build`` builds; ``GRID`` and ``FIXED`` are its search space."""
    module = _run(file)
    build = getattr(module, "build", None)
    if not callable(build):
        raise InputError(f"{file.path} must define build(config, in_channels, out_channels)")
    grid = {name: _values(file, name, value) for name, value in _settings(file, module, "GRID").items()}
    fixed = _settings(file, module, "FIXED")
    try:
        register_model(
            ModelKind(
                file.registered_name,
                build=build,
                uses=tuple(sorted(grid.keys() | fixed.keys() | {"hidden", "dropout"})),
                takes=getattr(module, "TAKES", "edge_index"),
            ),
            replace=True,
        )
        spec = ModelSpec(RunConfig(model=file.registered_name, **fixed), grid)
        spec.configs()  # refuses values that no run can have
    except InputError as error:
        raise InputError(f"{file.path}: {error}") from None
    return spec


def _run(file: ModelFile) -> ModuleType:
    """The file as a module that Python knows: PyG and ``inspect`` look classes' modules and sources up."""
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


def _settings(file: ModelFile, module: ModuleType, name: str) -> dict[str, Any]:
    settings = getattr(module, name, {})
    if not isinstance(settings, Mapping):
        raise InputError(f"{file.path}: {name} must be a dictionary, not {settings!r}")
    known = {entry.name for entry in fields(RunConfig)} - {"model", "seed"}
    for unknown in settings.keys() - known:
        raise InputError(
            f"{file.path}: {unknown!r} is no setting of a run; there are {', '.join(sorted(known))}"
        )
    return dict(settings)


def _values(file: ModelFile, name: str, value: object) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values:
        raise InputError(f"{file.path}: GRID has no value for {name!r}")
    return values
