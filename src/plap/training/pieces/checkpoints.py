"""The state of training on disk: one safetensors file, replaced in one step, never unpickled."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from plap.atomic_file import write_atomic
from plap.checks import check_integer
from plap.errors import InputError
from plap.training.adam import Moments, StackedAdam

FORMAT = "plap-checkpoint/2"

StateDict = dict[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often to write checkpoints, and whether to continue from an existing one."""

    path: Path | str
    every: int = 10
    """Epochs between checkpoints; one more is written at the end."""
    resume: bool = True
    """Continue from the file if there is one; otherwise it is overwritten."""

    def __post_init__(self) -> None:
        check_integer("the number of epochs between checkpoints", self.every, 1)

    @property
    def file(self) -> Path:
        """The path of the file."""
        return Path(self.path)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything that training changes, after some epoch; random numbers depend on its number alone."""

    history: Tensor
    """float64 [epochs, 3]: training loss, validation loss, validation score."""
    seconds: float
    state: StateDict
    best: StateDict
    """State of the best epoch."""
    moments: dict[str, StateDict]
    """Adam's, by name and parameter."""


def encode(snapshot: Snapshot, digest: str) -> bytes:
    """The content of a checkpoint file; ``digest`` identifies its configuration and data."""
    groups = {"state": snapshot.state, "best": snapshot.best} | {
        f"adam.{name}": values for name, values in snapshot.moments.items()
    }
    tensors = {f"{group}/{name}": value for group, values in groups.items() for name, value in values.items()}
    tensors["history"] = snapshot.history
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    header = {
        "format": FORMAT,
        "digest": digest,
        "seconds": snapshot.seconds,
        "tensors": _digest(tensors),
    }
    return save(tensors, metadata={"plap": json.dumps(header)})


def decode(content: bytes, digest: str, path: Path) -> Snapshot:
    """Read what :func:`encode` returned; anything else is refused in one sentence."""
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["plap"])
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError):
        _refuse(path, "it is damaged or was not written by plap")
    if header.get("format") != FORMAT:
        _refuse(path, "it was not written by this version of plap")
    if header["tensors"] != _digest(tensors):
        _refuse(path, "it is damaged")
    if header["digest"] != digest:
        _refuse(path, "it belongs to other data, another split or other settings; start without resuming")
    groups: dict[str, StateDict] = {}
    for name, value in tensors.items():
        group, _, key = name.partition("/")
        groups.setdefault(group, {})[key] = value
    return Snapshot(
        history=tensors["history"],
        seconds=header["seconds"],
        state=groups["state"],
        best=groups["best"],
        moments={name.removeprefix("adam."): v for name, v in groups.items() if name.startswith("adam.")},
    )


def read(path: Path) -> bytes | None:
    """The content of a checkpoint file; None if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _refuse(path, str(error.strerror))


def write(path: Path, content: bytes) -> None:
    """Replace a checkpoint in one step: after a crash, the file is either the old or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise InputError(f"the checkpoint {path} cannot be written ({error.strerror})") from None


def _digest(tensors: StateDict) -> str:
    sha = hashlib.sha256()
    for name in sorted(tensors):
        sha.update(f"{name} {tensors[name].dtype} {list(tensors[name].shape)} ".encode())
        sha.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def _refuse(path: Path, problem: str) -> NoReturn:
    raise InputError(f"the checkpoint {path} cannot be used: {problem}") from None


def moments_by_name(optimizer: StackedAdam, names: list[str]) -> dict[str, StateDict]:
    """Adam's state by kind of moment and name of parameter."""
    result: dict[str, StateDict] = {}
    for name, moments in zip(names, optimizer.state(), strict=True):
        for kind, value in moments._asdict().items():
            result.setdefault(kind, {})[name] = value
    return result


def load_moments(optimizer: StackedAdam, names: list[str], moments: dict[str, StateDict]) -> None:
    """Restore what :func:`moments_by_name` returned."""
    optimizer.load_state([Moments(*(moments[kind][name] for kind in Moments._fields)) for name in names])
