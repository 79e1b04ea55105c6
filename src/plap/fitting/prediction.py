"""Predictions of a trained ensemble for any graph with the same features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from plap.data.dataset import GraphData
from plap.data.tasks import Task
from plap.errors import InputError
from plap.fitting.artifacts import Predictions, SavedModel
from plap.graph import Graph
from plap.models import find_model
from plap.nn.linear import Features
from plap.training import RunConfig, build_module
from plap.training.pieces.distributed import choose_device


def predict_nodes(model: SavedModel, data: GraphData, *, device: str = "cpu") -> Predictions:
    """Predictions for every node of ``data``; its own labels, where it has any, are recoded beside them.

    Parameters
    ----------
    model : SavedModel
        What :func:`plap.fitting.artifacts.load_model` gave; its features are compared with those of ``data``.
    data : GraphData
    device : {"auto", "cpu", "cuda", "cuda:N"}
    """
    model.check_features(data.x.shape[1], data.feature_names)
    config = RunConfig.from_dict(dict(model.config))
    if set(config.to_dict()) - set(model.config) - set(find_model(config.model).later):
        raise InputError(f"{model.path}: model.json does not have the whole configuration")
    probabilities = member_probabilities(config, model.states, data.graph, data.x, model.task, device=device)
    known = model.task.recoded(data.y, data.task)
    return Predictions(
        data.node_ids,
        model.task,
        probabilities.numpy(),
        ["unlabelled"] * data.graph.num_nodes,
        None if known is None else known.numpy(),
    )


def agreement(table: Predictions, data: GraphData) -> dict[str, Any]:
    """How far predictions agree with the labels that the graph has itself; empty where it has none.

    ``known`` counts these labels; ``right`` says how many agree, where each node has one class, and otherwise
    the task's metric stands under its own name.
    """
    known, task = data.known, table.task
    count = int(known.sum())
    if table.known is None or not count:
        return {}
    truth, said = (torch.from_numpy(values)[known] for values in (table.known, table.probabilities))
    right = task.correct(truth, said)
    if right is None:
        return {"known": count, task.metric.name: task.metric.function(truth, task.decode(said))}
    return {"known": count, "right": int(right.sum())}


def member_probabilities(
    config: RunConfig,
    states: Sequence[Mapping[str, Tensor]],
    graph: Graph,
    x: Features,
    task: Task,
    *,
    device: str | torch.device = "cpu",
) -> Tensor:
    """Mean probabilities [N, L] of an ensemble on any graph: the members need not have seen it."""
    chosen = choose_device(device)
    graph = graph.to(chosen)
    if chosen.type != "cpu":
        x = x.to(chosen).to_dense()
    total = torch.zeros(graph.num_nodes, task.num_outputs, device=chosen)
    for state in states:
        module = build_module(config, x.shape[1], task.num_outputs)
        try:
            module.load_state_dict(dict(state))
        except RuntimeError:
            raise InputError("the model's weights do not fit its configuration") from None
        module.to(chosen).eval()
        with torch.no_grad():
            logits = module(x, graph)
        total += task.probabilities(logits)
    return (total / len(states)).cpu()
