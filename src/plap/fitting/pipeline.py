"""From a graph with some labels to a model that was compared with its rivals: :func:`plap.fit`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from torch import Tensor

from plap.checks import near_miss
from plap.data.dataset import GraphData
from plap.data.resolve import as_graph_data
from plap.data.splits import Split, bagged
from plap.data.splits import split as split_nodes
from plap.data.tables.assembly import encode_columns
from plap.data.tables.collections import split_graphs
from plap.data.tables.options import TableOptions
from plap.data.tables.table_file import SUFFIXES
from plap.data.tasks import Task
from plap.errors import InputError
from plap.fitting.comparison import RIVALS, Method, Rival, check_rivals, taught
from plap.fitting.decisions import choose_task, weigh_relations
from plap.fitting.pieces import prepare_pieces
from plap.fitting.result import FitResult
from plap.fitting.search import Announce, Fitted, NothingTrainedError, Train, fit_model
from plap.fitting.settings import MODEL, FitSettings
from plap.models import find_model
from plap.split_masks import BaggedSplit, SplitLike
from plap.training.config import OF_TRAINING
from plap.training.devices import usual_arithmetic
from plap.training.ensemble import held_out
from plap.training.loop import ProgressCallback
from plap.training.pieces import Ranks, join_ranks

_HARDLY = 30
"""Epochs of training after which scores begin to mean something."""
_SHARE_OF_EACH = 0.75
"""Of the time that is left, what the model takes, and then each rival that is trained."""
_WITHOUT_EDGES = (
    "No model that uses the edges was clearly better on the validation nodes than {}, which ignores them, so "
    "it was chosen; --models pgnn searches pGNN alone."
)
_BAGGED = (
    "The members of the ensemble divide training and validation nodes in different ways, so the model learns "
    "from {:,} labels instead of {:,}; --no-bagging trains all members on the same nodes."
)


@usual_arithmetic()
def fit(
    data: Any,
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
    graphs are held out, which no label can reach; gradient boosting where there are more than 500 features.
    From validation labels, each method learns a temperature for its probabilities and, for two classes and a
    metric that asks for it, a threshold. After Ctrl-C the best model so far is kept; a rival that was not
    finished, and all after it, are left out.

    Parameters
    ----------
    data : GraphData; what ``plap fit`` takes as GRAPH; (nodes, edges); or a NetworkX graph or PyG Data
        A graph, its features and labels; the name of a benchmark or a path; or tables and graphs in memory.
        Where a column is not called what :func:`plap.read_tables` expects, call that first.
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
        the result, removes them by ``plap.fitting.pieces.remove_checkpoints``.
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
    _check_options(options)
    settings = settings or FitSettings(**options)
    settings.config(MODEL)  # refuses what has no meaning before anything is loaded
    check_rivals(settings.rivals)
    data = as_graph_data(data, TableOptions(encode=False))
    check_learnable(data)
    if settings.conformal is not None and not (data.task.numeric or data.task.one_class_per_node):
        raise InputError(
            "conformal gives sets of classes or intervals of numbers, but a node of "
            f"{data.name} may have several labels"
        )
    split = split or choose_split(data, seed=settings.seed)
    _check_split(split, data)
    data = encode_columns(data, split.train)
    task, remarks = choose_task(data, split, settings)
    data = weigh_relations(data, split, task, settings)
    if settings.pieces is None:
        bags = _bags(data, split, settings)
        train = _OnWholeGraph(data, bags or split, settings, task)
        return _Comparing(data, split, settings, task, announce, bags).run(train, remarks)
    with ExitStack() as stack:
        ranks = ranks or stack.enter_context(join_ranks(settings.pieces.device))
        folder = Path(checkpoints or stack.enter_context(tempfile.TemporaryDirectory()))
        pieces = prepare_pieces(data, split, settings, ranks, folder, task)
        return _Comparing(data, split, settings, task, announce, alone=ranks.first).run(pieces, remarks)


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that a fit does not have; what a search may choose is fixed otherwise."""
    names = [each.name for each in fields(FitSettings)]
    for name, value in options.items():
        if name in names:
            continue
        if name in (*find_model(MODEL).fields, *OF_TRAINING):
            raise InputError(f"fit has no option {name!r}: fixed={{{name!r}: {value!r}}} fixes that value")
        raise InputError(f"fit has no option {name!r}{near_miss(name, names)}: {', '.join(names)}")


def choose_split(
    data: GraphData, kind: str | None = None, *, preset: str | None = None, seed: int = 0, index: int = 0
) -> Split:
    """The split of this kind; by default the one that the data prefers, or else a random one.

    The graphs of a collection are split as wholes, unless a file says how.

    Parameters
    ----------
    kind : {"stratified", "chien", "paper", "public", "graphs"}, optional
        As for :func:`plap.data.split`; "graphs" is for collections.
    preset, seed, index :
        As for :func:`plap.data.split`.
    """
    if kind is None and data.graph_of_node is not None:
        kind = "graphs" if data.splits is None else "public"
    if kind is None and data.splits is not None and data.splits.preferred and preset is None:
        kind = "public"
    if kind == "graphs":
        if preset is not None:
            raise InputError("--preset is for a split of nodes, but here whole graphs are split")
        return split_graphs(data, seed)
    return split_nodes(data, kind or "stratified", preset=preset, seed=seed, index=index)


def _bags(data: GraphData, split: Split, settings: FitSettings) -> BaggedSplit | None:
    """The split for members that each divide training and validation nodes anew, where that is all right.

    It is not where somebody else said which nodes are for training, nor with prediction sets or intervals,
    whose coverage is certain only for nodes that no member learned from.
    """
    intervals = data.task.numeric or settings.conformal is not None
    if not settings.bagging or settings.members == 1 or intervals:
        return None
    if split.kind not in ("stratified", "chien"):
        return None
    return bagged(split, data.y, settings.seed)


def _hardly_trained(methods: Sequence[Method]) -> Iterator[str]:
    """What to say of methods that the clock ended when they had hardly begun."""
    for method in methods:
        if method.fitted is not None and method.fitted.out_of_time:
            epochs = max(run.epochs for run in method.fitted.members)
            if epochs < _HARDLY:
                few = "one epoch" if epochs == 1 else f"{epochs} epochs"
                yield f"{method.name} was trained for only {few}, so its scores mean little."


def _check_split(split: Any, data: GraphData) -> None:
    if not isinstance(split, Split):
        raise InputError(
            f"split must be a plap.data.Split, such as plap.data.split(data, 'public'), not {split!r}"
        )
    nodes = data.graph.num_nodes
    if len(split.train) != nodes:
        raise InputError(f"the split is of {len(split.train)} nodes, but the graph has {nodes}")
    if data.task.one_class_per_node:
        seen = data.y[split.train & data.known].unique()
        if seen.shape[0] == 1:
            only = data.task.class_names[int(seen)]
            raise InputError(f"all training nodes are of class {only!r}, so there is nothing to tell apart")


def check_learnable(data: GraphData) -> None:
    """Refuse a graph that there is nothing to learn from."""
    if not bool(data.known.any()):
        files = data.provenance.files
        alone = len(files) == 1 and next(iter(files)).lower().endswith(SUFFIXES)
        advice = "; no table of nodes was found (nodes.csv in the folder, or --nodes)" if alone else ""
        raise InputError(f"{data.name} has no labels, so there is nothing to learn from{advice}")
    if data.task.one_class_per_node and data.num_classes < 2:
        raise InputError(f"{data.name} has one class only, so there is nothing to tell apart")
    if data.task.numeric and data.y[data.known].unique().shape[0] < 2:
        raise InputError(f"{data.name} has the same number everywhere, so there is nothing to tell apart")


class _OnWholeGraph:
    """Searches and trains on the whole graph."""

    def __init__(self, data: GraphData, split: SplitLike, settings: FitSettings, task: Task) -> None:
        self._data, self._split, self._settings, self._task = data, split, settings, task
        self._deadline = settings.start_clock()

    def __call__(self, model: str, progress: ProgressCallback | None) -> Fitted:
        data = self._data
        return fit_model(
            data.graph, data.x, data.y, self._split, self._settings, model,
            task=self._task, progress=progress, time_limit=self._deadline.part(_SHARE_OF_EACH),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Comparing:
    """The model and then its rivals; those that are no models only if this process is the ``alone`` one."""

    data: GraphData
    split: Split
    settings: FitSettings
    task: Task
    announce: Announce | None = None
    bags: BaggedSplit | None = None
    alone: bool = True

    def run(self, train: Train, remarks: tuple[str, ...]) -> FitResult:
        methods = [self._trained(MODEL, train)]
        interrupted, fitted = methods[0].interrupted, methods[0].fitted
        assert fitted is not None
        chosen = fitted.config
        if not chosen.uses_edges and not interrupted:
            remarks += (_WITHOUT_EDGES.format(methods[0].name),)
        learned, train_nodes = taught(fitted, self.bags or self.split), self.split.train
        bags = self.bags if bool((learned & ~train_nodes).any()) else None
        for name in self.settings.rivals:
            if interrupted:
                break
            if name == chosen.model:
                continue  # it is the model itself
            rival = RIVALS.get(name)
            if rival is not None:
                reason = rival.refuses(self.data, self.task) if self.alone else ""
                if reason is not None:
                    remarks += (reason,) if reason else ()
                    continue
            try:
                method = (
                    self._trained(name, train) if rival is None else self._simple(rival, bags is not None)
                )
            except (KeyboardInterrupt, NothingTrainedError):
                interrupted = True
            else:
                interrupted = method.interrupted
                methods += [] if interrupted else [method]
        if bags is not None:
            remarks += (_BAGGED.format(int(learned.sum()), int(train_nodes.sum())),)
        if any(method.fitted is not None and method.fitted.out_of_time for method in methods):
            remarks += (self.settings.said_of_time, *_hardly_trained(methods))
        return FitResult(self.data, self.split, self.settings, tuple(methods), interrupted, remarks, bags)

    def _trained(self, model: str, train: Train) -> Method:
        kind = find_model(model)
        begin = time.perf_counter()
        fitted = train(model, self._tell(kind.title_or_name))
        kind = find_model(fitted.config.model)
        honest = held_out(fitted.ensemble, self.bags or self.split)
        said = fitted.ensemble.probabilities
        return self._judged(kind.title_or_name, kind.uses, said, honest, begin, fitted)

    def _simple(self, rival: Rival, refit: bool) -> Method:
        name = rival.name(self.task)
        self._tell(name)
        begin = time.perf_counter()
        said, judged_by = rival.run(self.data, self.split, self.task, refit)
        honest = judged_by, self.split.val
        return self._judged(name, rival.uses, said, honest, begin, weighted=rival.weighted)

    def _tell(self, name: str) -> ProgressCallback | None:
        return None if self.announce is None else self.announce(name)

    def _judged(
        self, name: str, uses: str, probabilities: Tensor, honest: tuple[Tensor, Tensor], begin: float,
        fitted: Fitted | None = None, *, weighted: bool = True,
    ) -> Method:  # fmt: skip
        task = self.task if fitted is None else fitted.ensemble.task
        return Method.judged(
            name, uses, self.data, self.split, task, probabilities, honest, time.perf_counter() - begin,
            fitted, self.settings.conformal, weighted=weighted,
        )  # fmt: skip
