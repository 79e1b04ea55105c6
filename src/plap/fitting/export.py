"""A fitted model as one file that runs without plap: a program of ``torch.export``, or ONNX."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from plap.atomic_file import write_atomic
from plap.checks import import_extra
from plap.data.tasks import Task
from plap.errors import InputError
from plap.fitting.artifacts import SavedModel, load_model
from plap.fitting.prediction import member_configs, member_probabilities
from plap.graph import Graph
from plap.insight.members import load_members
from plap.models import find_model, models_with
from plap.nn import PGNN, PLaplacianConv
from plap.propagation import propagate
from plap.training import RunConfig

__all__ = ["Export", "export_model"]

SUFFIXES = (".pt2", ".onnx")
DESCRIPTION = "plap.json"
"""The file inside a ``.pt2`` and the metadata entry of an ``.onnx`` that say what a program is for."""
_SAMPLE = 12
"""Nodes of the graph that the program is traced on."""
_CHECKED = 60
"""Nodes of the graph on which it is compared with plap."""
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Export:
    """What :func:`export_model` wrote."""

    path: Path
    members: int
    features: int
    outputs: tuple[str, ...]
    """Names of the classes, in the order of the columns of the result; empty for a number."""
    difference: float
    """Largest difference from plap's own result on a random graph."""
    relations: dict[str, float]
    """By what the weights of each relation's edges must be multiplied beforehand; empty without relations."""

    def to_json(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {**self.__dict__, "path": str(self.path), "outputs": list(self.outputs)}


def export_model(model: SavedModel | Path | str, path: Path | str) -> Export:
    """Write a fitted model as a program that needs PyTorch or an ONNX runtime, and not plap.

    The program takes ``x`` (float32, [nodes, features]), ``edge_index`` (int64, [2, entries]) and
    ``edge_weight`` (float32, [entries]), and returns probabilities [nodes, classes], or numbers [nodes, 1].
    ``edge_index`` must have both directions of every edge, no edge twice and no self-loop, as
    ``plap.Graph.edge_index`` does; the program does not check that. Nodes and entries may be any number.
    ``x`` must be the features as plap makes them: for a table those of ``plap.fit(...).data.x``, or of
    ``plap.fitting.prediction.read_like`` for another one.

    The propagation is that of the backend "torch". Before the file is written, the program is compared with
    plap's own result on a random graph.

    A model of several relations has learned a factor for each: multiply the weights of a relation's edges by
    its factor, and add up the weights of edges that join the same nodes, before the program gets them. The
    factors are in the description and in what this function returns.

    Parameters
    ----------
    model : SavedModel or path
        A model, or a folder that ``plap fit`` wrote.
    path : path
        Ends in ``.pt2`` (``torch.export``) or ``.onnx``; the latter needs ``pip install 'plap[onnx]'``, and
        its program does not take a graph without any edge.

    Examples
    --------
    To run a program, without plap::

        program = torch.export.load("model.pt2").module()
        probabilities = program(x, edge_index, edge_weight)
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path} must end in {' or '.join(SUFFIXES)}")
    if path.suffix == ".onnx":
        import_extra("onnxscript", "onnx", "an export to ONNX")
    if not isinstance(model, SavedModel):
        model = load_model(model)
    for config in member_configs(model):
        if not find_model(config.model).exportable:
            raise InputError(f"{models_with('exportable')} can be exported, not {config.model}")
    program = _traced(_Ensemble(model), model.num_features)
    difference = _difference(program, model)
    if difference > _TOLERANCE:
        raise InputError(
            f"the exported program differs from the model by {difference:.1g}: nothing is written"
        )
    write_atomic(path, _encoded(program, path.suffix, json.dumps(_description(model), ensure_ascii=False)))
    names = tuple(str(name) for name in model.classes)
    return Export(path, len(model.states), model.num_features, names, difference, dict(model.relations or {}))


class _Ensemble(torch.nn.Module):
    """All members and what the task makes of their outputs, as one function of tensors."""

    def __init__(self, model: SavedModel) -> None:
        super().__init__()
        configs = member_configs(model)
        members = load_members(configs, model.states, model.num_features, model.task.num_outputs)
        self.members = torch.nn.ModuleList(members).eval()
        self._alike: dict[RunConfig, list[int]] = {}
        for k, config in enumerate(configs):
            self._alike.setdefault(config.with_values(seed=0), []).append(k)
        self.task: Task = model.task
        self.requires_grad_(False)
        for module in self.modules():
            if isinstance(module, PLaplacianConv):
                module.backend = "torch"

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        graph = _TracedGraph(edge_index, edge_weight, x.shape[0])
        logits = torch.cat([self._of_alike(places, x, graph) for places in self._alike.values()])
        return self.task.calibrated(self.task.probabilities(logits).mean(0))

    def _of_alike(self, places: list[int], x: Tensor, graph: Graph) -> Tensor:
        """Logits [members, N, L] of members with one configuration."""
        members = [self.members[k] for k in places]
        stackable = [member for member in members if isinstance(member, PGNN)]
        if stackable:
            return self._together(stackable, x, graph)
        return torch.stack([member(x, graph) for member in members])

    def _together(self, members: list[PGNN], x: Tensor, graph: Graph) -> Tensor:
        """All members propagate as one stack, so that the program has the steps once and not per member."""
        first = members[0].conv
        states = torch.stack([member.embed(x) for member in members])
        penalty, mu = first.at_scale_of(states, graph)
        states = propagate(
            states, graph, mu=mu, K=first.K, penalty=penalty, omega=first.omega, eps=first.eps,
            backend="torch",
        )  # fmt: skip
        return torch.stack([member.conv.lin(state) for member, state in zip(members, states, strict=True)])


class _TracedGraph(Graph):
    """The arrays that the backend "torch" asks a graph for, made of tensors that are not known yet."""

    def __init__(self, edge_index: Tensor, weight: Tensor, num_nodes: int) -> None:
        degree = weight.new_zeros(num_nodes, dtype=torch.float64).index_add(0, edge_index[1], weight.double())
        values = {"indices": edge_index[0], "weight": weight, "degree": degree}
        for name, value in {**values, "_receivers": edge_index[1], "_num_nodes": num_nodes}.items():
            object.__setattr__(self, name, value)

    @property
    def num_nodes(self) -> int:
        number: int = self.__dict__["_num_nodes"]
        return number

    def receivers(self) -> Tensor:
        receivers: Tensor = self.__dict__["_receivers"]
        return receivers


def _traced(module: _Ensemble, features: int) -> torch.export.ExportedProgram:
    nodes, entries = torch.export.Dim("nodes", min=0), torch.export.Dim("entries", min=0)
    shapes = {"x": {0: nodes}, "edge_index": {1: entries}, "edge_weight": {0: entries}}
    with torch.no_grad():
        return torch.export.export(module, _random_inputs(_SAMPLE, features), dynamic_shapes=shapes)


def _random_inputs(nodes: int, features: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features and the arrays of a random graph, one of whose nodes has no edge."""
    draws = torch.Generator().manual_seed(0)
    edges = torch.randint(nodes - 1, (2, 2 * nodes), generator=draws)
    graph = Graph.from_edge_index(edges, torch.rand(2 * nodes, generator=draws) + 0.5, nodes)
    return torch.randn(nodes, features, generator=draws), graph.edge_index, graph.weight


def _difference(program: torch.export.ExportedProgram, model: SavedModel) -> float:
    """Largest difference from plap's own result, in units of the largest number that is predicted."""
    x, edge_index, weight = _random_inputs(_CHECKED, model.num_features)
    graph = Graph.from_edge_index(edge_index, weight, _CHECKED)
    expected = member_probabilities(member_configs(model), model.states, graph, x, model.task)
    with torch.no_grad():
        got = program.module()(x, edge_index, weight)
    return float((got - expected).abs().max() / expected.abs().max().clamp(min=1.0))


def _description(model: SavedModel) -> dict[str, Any]:
    """What whoever runs the program should know."""
    task = model.task.settings()
    return {
        "task": model.task.name,
        "classes": [str(name) for name in model.classes],
        "features": None if model.feature_names is None else list(model.feature_names),
        "relations": dict(model.relations or {}),
        "threshold": task.get("threshold"),
        "positive": task.get("positive"),
        "versions": dict(model.versions),
    }


def _encoded(program: torch.export.ExportedProgram, suffix: str, description: str) -> bytes:
    if suffix == ".onnx":
        with _quiet():
            converted = torch.onnx.export(program, dynamo=True, verbose=False)
        assert converted is not None
        converted.model.metadata_props[DESCRIPTION] = description
        encoded: bytes = converted.model_proto.SerializeToString()
        return encoded
    stream = io.BytesIO()
    torch.export.save(program, stream, extra_files={DESCRIPTION: description})
    return stream.getvalue()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the log messages and warnings of PyTorch's exporter; none concerns the model."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
