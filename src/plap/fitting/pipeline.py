"""From a graph with some labels to a model that was compared with its rivals: :func:`plap.fit`."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from plap.data.dataset import GraphData
from plap.data.metrics import accuracy
from plap.data.resolve import open_graph
from plap.data.splits import Split
from plap.data.splits import split as split_nodes
from plap.data.tables.collections import split_graphs
from plap.errors import InputError
from plap.fitting.comparison import Method
from plap.fitting.pieces import prepare_pieces
from plap.fitting.result import FitResult
from plap.fitting.search import Announce, Fitted, NothingTrainedError, Train, fit_model
from plap.fitting.settings import LABEL_PROPAGATION, MODEL, FitSettings
from plap.label_propagation import PLaplacianLabelPropagation
from plap.models import find_model
from plap.training.loop import ProgressCallback
from plap.training.pieces import Ranks, join_ranks


def fit(
    data: GraphData | str | os.PathLike[str],
    split: Split | None = None,
    *,
    settings: FitSettings | None = None,
    announce: Announce | None = None,
    ranks: Ranks | None = None,
    checkpoints: Path | str | None = None,
    **options: Any,
) -> FitResult:
    """Find, train and judge a model for a graph with some labels, and compare it with its rivals.

    The search looks at training and validation labels only; the test labels are looked at once, when a
    method is finished. Label propagation is left out where a node may have several labels, and where whole
    graphs are held out, which no label can reach. After Ctrl-C the best model so far is kept; a rival that
    was not finished, and all after it, are left out.

    Parameters
    ----------
    data : GraphData, or what ``plap fit`` takes as GRAPH
        A graph, its features and labels; or the name of a benchmark, or a path.
    split : Split, optional
        By default 60/20/20, stratified; the graphs of a collection are split as wholes, and a graph that was
        attacked by its own public split.
    settings : FitSettings, optional
    announce : function of a name, optional
        Called when a method's training begins; returns the function that is told its progress, or None.
    ranks : Ranks, optional
        With ``settings.pieces``: the processes that train together; see
        :func:`plap.training.pieces.join_ranks`.
    checkpoints : path, optional
        With ``settings.pieces``: the folder for checkpoints. They stay there until the caller, who has saved
        the result, removes them by :func:`plap.fitting.pieces.remove_checkpoints`.
    **options :
        Fields of :class:`FitSettings`, in place of ``settings``.

    Returns
    -------
    FitResult
        ``result.metrics``, ``result.predictions``, ``result.predict(data)``, ``result.save(folder)``.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=-0.75, n=300, f=20, d=8.0, seed=1)
    >>> result = plap.fit(data, search=False, seeds=1, max_epochs=20, rivals=("mlp",))
    >>> [method.name for method in result.methods]
    ['pGNN', 'MLP']
    """
    if settings is not None and options:
        raise InputError(f"give settings or {next(iter(options))}, not both")
    settings = settings or FitSettings(**options)
    settings.config(MODEL)  # refuses what has no meaning before anything is loaded
    if not isinstance(data, GraphData):
        data = open_graph(os.fspath(data))
    check_learnable(data)
    split = split or choose_split(data, seed=settings.seed)
    if settings.pieces is None:
        return _compare(data, split, settings, announce, _OnWholeGraph(data, split, settings))
    with ExitStack() as stack:
        ranks = ranks or stack.enter_context(join_ranks(settings.pieces.device))
        folder = Path(checkpoints or stack.enter_context(tempfile.TemporaryDirectory()))
        train = prepare_pieces(data, split, settings, ranks, folder)
        return _compare(data, split, settings, announce, train, alone=ranks.first)


def choose_split(
    data: GraphData, kind: str | None = None, *, preset: str | None = None, seed: int = 0, index: int = 0
) -> Split:
    """The split of this kind; by default the graphs of a collection are split as wholes.

    Where the split that came with the data is binding, as for a graph that was attacked, it is the default.

    Parameters
    ----------
    kind : {"stratified", "chien", "paper", "public", "graphs"}, optional
        As for :func:`plap.data.split`; "graphs" is for collections.
    preset, seed, index :
        As for :func:`plap.data.split`.
    """
    if kind is None and data.graph_of_node is not None:
        kind = "graphs" if data.splits is None else "public"
    if kind is None and preset is None and data.splits is not None and data.splits.binding:
        kind = "public"
    if kind == "graphs":
        if preset is not None:
            raise InputError("--preset is for a split of nodes, but here whole graphs are split")
        return split_graphs(data, seed)
    return split_nodes(data, kind or "stratified", preset=preset, seed=seed, index=index)


def check_learnable(data: GraphData) -> None:
    """Refuse a graph that there is nothing to learn from."""
    if not bool(data.known.any()):
        raise InputError(f"{data.name} has no labels, so there is nothing to learn from")
    if data.task.one_class_per_node and data.num_classes < 2:
        raise InputError(f"{data.name} has one class only, so there is nothing to tell apart")


class _OnWholeGraph:
    """Searches and trains on the whole graph."""

    def __init__(self, data: GraphData, split: Split, settings: FitSettings) -> None:
        self._data, self._split, self._settings = data, split, settings

    def __call__(self, model: str, progress: ProgressCallback | None) -> Fitted:
        data = self._data
        return fit_model(
            data.graph, data.x, data.y, self._split, self._settings, model,
            num_classes=data.num_classes, progress=progress,
        )  # fmt: skip


def _compare(
    data: GraphData, split: Split, settings: FitSettings, announce: Announce | None, train: Train,
    *, alone: bool = True,
) -> FitResult:  # fmt: skip
    """Train the model, then its rivals; label propagation only where this process is the ``alone`` one."""
    announce = announce or (lambda _: None)
    methods = [_trained(MODEL, data, split, train, announce)]
    interrupted = methods[0].interrupted
    for rival in settings.rivals:
        if interrupted:
            break
        propagates = rival == LABEL_PROPAGATION
        reachable = data.task.one_class_per_node and data.graph_of_node is None
        if propagates and not (reachable and alone):
            continue
        try:
            method = (
                _propagated(data, split, announce)
                if propagates
                else _trained(rival, data, split, train, announce)
            )
        except (KeyboardInterrupt, NothingTrainedError):
            interrupted = True
        else:
            interrupted = method.interrupted
            methods += [] if interrupted else [method]
    return FitResult(data, split, settings, tuple(methods), interrupted)


def _trained(model: str, data: GraphData, split: Split, train: Train, announce: Announce) -> Method:
    kind = find_model(model)
    begin = time.perf_counter()
    fitted = train(model, announce(kind.title_or_name))
    return Method.judged(
        kind.title_or_name,
        kind.uses,
        data,
        split,
        fitted.ensemble.probabilities,
        time.perf_counter() - begin,
        fitted,
    )


def _propagated(data: GraphData, split: Split, announce: Announce) -> Method:
    """Label propagation from the training labels, its p and mu chosen by the validation labels."""
    name = "label propagation"
    announce(name)
    begin = time.perf_counter()
    known = torch.where(split.train, data.y, -1)
    tried: list[tuple[float, Tensor]] = []
    for p in (1.5, 2.0):
        for mu in (0.1, 1.0):
            model = PLaplacianLabelPropagation(p=p, mu=mu, tol=1e-3, max_iter=200).fit(data.graph, known)
            some = torch.from_numpy(model.probabilities_).float()
            every = torch.zeros(some.shape[0], data.num_classes)
            every[:, torch.as_tensor(model.classes_)] = some
            tried.append((accuracy(data.y[split.val], every[split.val].argmax(1)), every))
    _, best = max(tried, key=lambda trial: trial[0])
    return Method.judged(name, "edges alone", data, split, best, time.perf_counter() - begin)
