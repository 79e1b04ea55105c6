"""How far the accuracy of a fit falls when an adversary who knows the model changes edges."""

from __future__ import annotations

from torch import Tensor

from plap.checks import check_flag, check_integer, check_number
from plap.data.dataset import GraphData
from plap.data.splits import bagged
from plap.errors import InputError
from plap.fitting.artifacts import SavedModel
from plap.fitting.fitted_graph import check_one_class
from plap.fitting.prediction import member_configs
from plap.insight.attack import AttackCurve, attack_curve, retraining
from plap.insight.members import load_members
from plap.split_masks import SplitLike

_PARTS = (0.1, 0.25, 0.5, 1.0)
"""Budgets that are tried, as parts of the largest."""


def attack_fit(
    model: SavedModel,
    data: GraphData,
    sets: SplitLike,
    test: Tensor,
    budget: float | None = None,
    *,
    first: int | None = None,
    local: int = 0,
    poison: bool = False,
    members: int = 4,
    steps: int = 60,
    seed: int = 0,
) -> AttackCurve:
    """Attack the edges of a fit's own graph with budgets up to the largest.

    Parameters
    ----------
    model : SavedModel
        Of one class per node.
    data : GraphData
        What it was fitted on.
    sets : object with boolean masks ``train`` and ``val``
        Of the fit: what the model is retrained with if ``poison``.
    first : int, optional
        If members divided these sets anew, the seed of the one that did not.
    test : Tensor, boolean, shape [N]
        The nodes that are attacked and judged.
    budget : float, optional
        Largest share of the edges that the adversary may change, 0.1 by default; if ``local``, of the edges
        of a node, all of them by default.
    local : int
        Attack this many test nodes one by one, the first ones; 0: all at once.
    poison : bool
        Retrain the model on each attacked graph: the attack comes before training.
    members : int
        How many ensemble members are attacked together, the first ones.
    steps, seed :
        As for :func:`plap.insight.attack_curve`.
    """
    check_one_class(model, "attacked")
    local = check_integer("local", local, 0)
    if budget is None:
        budget = 1.0 if local else 0.1
    check_number("budget", budget, above=0, most=1)
    if check_flag("poison", poison) and local:
        raise InputError("an attack on single nodes comes after training: poison does not go with local")
    known = model.task.recoded(data.y, data.task)
    if known is None or data.graph.digest != model.graph_digest:
        where = "the model" if model.path is None else model.path
        raise InputError(
            f"{data.name} is not the graph that {where} was fitted on, so its test nodes are unknown"
        )
    configs = member_configs(model)[: check_integer("members", members, 1)]
    modules = load_members(configs, model.states[: len(configs)], data.x.shape[1], len(model.classes))
    retrain = None
    if poison:
        sets = sets if first is None else bagged(sets, known, first)
        different = dict.fromkeys(config.with_values(seed=configs[0].seed) for config in configs)
        retrain = retraining(list(different), data.x, known, sets, len(modules), model.task)
    judged = test & (known >= 0)
    if local:
        judged[judged.nonzero().squeeze(1)[local:]] = False
    budgets = [part * budget for part in _PARTS]
    return attack_curve(
        modules, data.x, data.graph, known, judged, budgets, local=local > 0, retrain=retrain,
        task=model.task, steps=steps, seed=seed,
    )  # fmt: skip
