"""Training runs on a whole graph: which are trained together, progress, results, Ctrl-C."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from plap.checks import check_choice
from plap.data.tasks import Task, training_task
from plap.errors import InputError, MemoryBudgetError
from plap.graph import Graph
from plap.memory import MemoryBudget, parse_budget, readable
from plap.models import find_model
from plap.models.stacked import Family
from plap.nn.linear import Features
from plap.propagation import memory_needed
from plap.split_masks import SplitLike
from plap.training.batch import Batch, not_begun
from plap.training.config import RunConfig
from plap.training.devices import choose_device, memory_for_batches, usual_arithmetic, wide
from plap.training.inputs import make_inputs
from plap.training.results import Progress, RunResult
from plap.training.stopping import Deadline, Interrupts, TimeLimit

ProgressCallback = Callable[[Progress], None]
Finished = Callable[[int, RunResult], None]
OnInterrupt = Literal["keep", "raise"]

DEFAULT_BUDGET = 2 * 2**30
"""Bytes that a batch may take if the caller sets no limit."""

_CACHE = 24 * 2**20
"""Bytes beyond which a larger batch no longer pays, because its runs evict one another from the cache."""

_FIXED_COST = 4e5
"""What an epoch costs on the smallest graph, see :func:`epoch_cost`."""
_USUAL_WIDTH = 208
"""Numbers per node of a pGNN with 16 units and K = 4: taken for models that do not say theirs."""

_AMORTISED = 8
"""Runs that share Python's cost per epoch well enough: a batch has this many even beyond the cache, unless
each of them by itself exceeds it, where that cost is no longer felt."""


@usual_arithmetic()
def train_runs(
    graph: Graph,
    x: Features,
    y: Tensor,
    configs: Sequence[RunConfig],
    splits: SplitLike | Sequence[SplitLike],
    *,
    num_classes: int | None = None,
    task: Task | None = None,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "auto",
    memory_budget: MemoryBudget = None,
    progress: ProgressCallback | None = None,
    finished: Finished | None = None,
    on_interrupt: OnInterrupt = "keep",
    time_limit: TimeLimit = None,
) -> list[RunResult]:
    """Train all runs, many at a time, and return their results in the order of ``configs``.

    Runs of one model with equal ``hidden`` and ``K`` are stacked and go through every operation together,
    as many at a time as fit into the cache and the memory budget; runs of a model without a stacked form,
    such as a user's own module, are trained one after another. The result of a run depends only on its
    configuration and its split, never on the runs beside it, and is reproducible for the same number of
    threads. Numbers to predict are the exception: they are centred and scaled by the training nodes of all
    splits of the call.

    Each epoch is one step of Adam on the training nodes followed by an evaluation on the validation nodes.
    A run ends after ``patience`` epochs without a better validation score (or a lower loss, see ``stop_by``
    and ``stopping``) and keeps the weights of its best epoch. Gradients are not clipped: Adam's step does not
    grow with the gradient, and a step whose gradient is not finite is skipped. Test nodes are never used.

    Parameters
    ----------
    graph : Graph
    x : Tensor, shape [N, F]
        Dense, torch sparse or SciPy sparse.
    y : Tensor
        int64 [N], one class per node, -1 where unknown; floats [N, L] of 0 and 1 for several labels per node;
        or floats [N], NaN where unknown, for numbers: see :class:`plap.data.Task`.
    configs : sequence of RunConfig
    splits : object with boolean masks ``train`` and ``val``, or a sequence of one per run
        Such as :class:`plap.data.Split`.
    num_classes : int, optional
        By default one more than the largest label among the training and validation nodes of ``splits``.
    task : Task, optional
        What to predict, in place of ``num_classes``: which metric is the validation score
        (:meth:`plap.data.Task.with_metric`), and the weights of the classes in the training loss.
    dtype : torch.float32 or torch.float64
    device : str or torch.device
        Where to train: "cpu", "cuda", "cuda:1" or "mps"; "auto" is where x is, unless that is the CPU and
        there is a CUDA device. Results are on the CPU. Initial weights and the dropout masks of stacked runs
        are the same on every device, so results differ by rounding alone.
    memory_budget : int or str, optional
        Memory that a batch may take besides graph and features, in bytes or as ``"4GiB"``. If not even one
        pGNN fits, its activations are recomputed instead of stored, which changes results by rounding; a
        budget that is too small even for that is refused. A single run of another model is trained whatever
        it takes. Without a budget, batches of several runs are limited to 2 GiB on the CPU, and to 80 % of
        the free memory on another device. A batch that runs out of memory there is trained again in two
        halves, with a warning; results do not depend on it.
    progress : function of a Progress, optional
        Called after every epoch.
    finished : function of an index and a RunResult, optional
        Called once for every run as soon as it ends, before the others continue, with its position in
        ``configs``, so that its result can be stored. Not called for a run that was interrupted.
    on_interrupt : {"keep", "raise"}
        On Ctrl-C, end all runs after the current epoch and return the best of each so far, with
        ``interrupted`` set; or raise KeyboardInterrupt.
    time_limit : number of seconds, or text such as "10m", optional
        Afterwards, all runs end with the epoch that is being trained and keep their best so far, with
        ``out_of_time`` set; those that have not begun have ``best_epoch`` 0. The first batch is trained for
        an epoch whatever it takes.

    Examples
    --------
    >>> import torch, plap
    >>> from plap.data import csbm, split
    >>> from plap.training import RunConfig, train_runs
    >>> data = csbm(phi=0.5, n=100, f=20, seed=1)
    >>> configs = [RunConfig(p=p, max_epochs=5, seed=seed) for p in (1.5, 2.0) for seed in range(3)]
    >>> results = train_runs(data.graph, data.x, data.y, configs, split(data.y, seed=1))
    >>> [result.epochs for result in results]
    [5, 5, 5, 5, 5, 5]
    """
    check_choice("on_interrupt", on_interrupt, OnInterrupt)
    deadline = Deadline.of(time_limit)
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"dtype must be torch.float32 or torch.float64, not {dtype}")
    if isinstance(configs, RunConfig):
        raise InputError("configs must be a sequence of RunConfig, such as [RunConfig()], not a single one")
    if not isinstance(y, Tensor):
        raise InputError(f"y must be a tensor, not {type(y).__name__}")
    if not configs:
        return []
    place = choose_device(_place_of(x) if device == "auto" else device)
    if dtype == torch.float64 and wide(place) != dtype:
        raise InputError(f"dtype must be torch.float32 on {place}, which has no float64")
    each = _one_per_run(
        [_on_cpu(split) for split in splits] if isinstance(splits, Sequence) else _on_cpu(splits),
        len(configs),
    )
    families = [family for config in configs if (family := _family(config)) is not None]
    adjacency = any(family.uses_adjacency for family in families)
    means = any(family.uses_means for family in families)
    inputs = make_inputs(graph, x, dtype, adjacency=adjacency, means=means, device=place)
    y = (y.clone() if y.is_inference() else y).cpu()
    task = training_task(y, each, graph.num_nodes, num_classes, task)
    sizes = [
        run_bytes(
            config, graph.num_nodes, inputs.num_features, task.num_outputs, dtype.itemsize, graph.num_entries
        )
        for config in configs
    ]
    given = parse_budget(memory_budget)
    budget = memory_for_batches(place) if given is None else given
    left = [
        None if budget is None else propagation_budget(config, size, graph, dtype, budget, place)
        for config, size in zip(configs, sizes, strict=True)
    ]
    cached = _CACHE if place.type == "cpu" else None
    waiting = make_batches(configs, sizes, budget or DEFAULT_BUDGET, cached)[::-1]
    meter = _Meter(progress, len(configs))
    results: dict[int, RunResult] = {}

    def note(run: int, result: RunResult) -> None:
        results[run] = result
        if finished is not None:
            finished(run, result)

    with Interrupts() as interrupts:
        while waiting:
            members = waiting.pop()
            these = [configs[k] for k in members]
            if deadline.passed and results:
                results.update((k, not_begun(configs[k], inputs, task)) for k in members)
                continue
            try:
                batch = Batch(inputs, y, task, these, [each[k] for k in members], left[members[0]])
                _train(batch, members, interrupts, deadline, meter, note, on_interrupt)
                out_of_time = deadline.passed and not interrupts.pending
                results.update(zip(members, batch.results(out_of_time=out_of_time), strict=True))
            except torch.OutOfMemoryError:
                rest = [run for run in members if run not in results]
                waiting += _halves(rest, place)[::-1]
                batch = None
            meter.done = len(results)
    return [results[run] for run in range(len(configs))]


def _train(
    batch: Batch, members: Sequence[int], interrupts: Interrupts, deadline: Deadline, meter: _Meter,
    note: Finished, on_interrupt: OnInterrupt,
) -> None:  # fmt: skip
    """Train a batch to its end, or until Ctrl-C, or until its time is over."""
    try:
        while len(batch.active) and not interrupts.pending and not (batch.epoch and deadline.passed):
            for run in batch.train_epoch():
                note(members[run], batch.result(run))
            meter(batch)
    except KeyboardInterrupt:
        interrupts.pending = True
    if interrupts.pending and on_interrupt == "raise":
        raise KeyboardInterrupt


def _halves(runs: list[int], device: torch.device) -> list[list[int]]:
    """The runs of a batch that ran out of memory as two batches, and a warning; one run alone is refused."""
    if len(runs) == 1:
        raise MemoryBudgetError(
            f"a single run does not fit into the memory of {device}: set memory_budget, or train in pieces"
        ) from None
    middle = -(-len(runs) // 2)
    warnings.warn(
        f"{device} ran out of memory with {len(runs)} runs at a time; going on with {middle}", stacklevel=3
    )
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return [runs[:middle], runs[middle:]]


def _place_of(x: object) -> torch.device | str:
    """Where x is, or "auto" if that is the CPU."""
    return x.device if isinstance(x, Tensor) and x.device.type != "cpu" else "auto"


class _Masks(NamedTuple):
    train: Tensor
    val: Tensor


def _on_cpu(split: SplitLike) -> SplitLike:
    if not all(isinstance(getattr(split, name, None), Tensor) for name in ("train", "val")):
        raise InputError(
            f"a split must have tensors train and val, as a plap.data.Split has, not {type(split).__name__}"
        )
    if split.train.device.type == split.val.device.type == "cpu":
        return split
    return _Masks(split.train.cpu(), split.val.cpu())


def run_bytes(
    config: RunConfig, nodes: int, features: int, classes: int, itemsize: int, entries: int = 0
) -> int:
    """Estimated bytes that one run adds to a batch: activations, parameters, gradients and moments.

    0 for a model whose runs are trained one after another.
    """
    family = _family(config)
    if family is None:
        return 0
    held = nodes * (family.width(config.parameters, classes) + 3 * classes)
    held += entries * family.edge_width(config.parameters)
    return itemsize * (held + 6 * family.weights(config.parameters, features, classes))


def epoch_cost(config: RunConfig, nodes: int) -> float:
    """What an epoch of a run costs beside one of another: a fixed part, and the numbers it holds for nodes.

    The fixed part is what an epoch takes on the smallest graphs, where operations are short.
    """
    family = _family(config)
    width = _USUAL_WIDTH if family is None else family.width(config.parameters, 2)
    return _FIXED_COST + nodes * width


def propagation_budget(
    config: RunConfig, run_size: int, graph: Graph, dtype: torch.dtype, budget: int,
    device: torch.device | str = "cpu",
) -> int | None:  # fmt: skip
    """Bytes of the budget left for propagation, if storing all its activations would exceed the budget.

    None if everything fits. Refuses a budget in which the run cannot be trained at all.
    """
    family = _family(config)
    if family is None or family.propagation is None or run_size <= budget:
        return None
    channels, steps = family.propagation(config.parameters)
    need = memory_needed(graph.num_nodes, graph.num_entries, channels, steps, dtype=dtype, device=device)
    rest = max(0, run_size - need.usual)
    if budget < rest + need.least:
        raise MemoryBudgetError(
            f"memory_budget is too small: a run with {channels} hidden units and K = {steps} on "
            f"{graph.num_nodes} nodes needs at least {readable(rest + need.least)}"
        )
    return budget - rest


def make_batches(
    configs: Sequence[RunConfig], bytes_per_run: Sequence[int], budget: int, cache: int | None = _CACHE
) -> list[list[int]]:
    """Indices of the runs of each batch. A run that exceeds the budget by itself is a batch of its own.

    Beyond ``cache`` bytes a batch has few runs; None: a device on which more runs at a time always pay.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    batches: list[list[int]] = []
    for index, config in enumerate(configs):
        if _family(config) is None:
            batches.append([index])
        else:
            groups.setdefault(_shape(config), []).append(index)
    for group in groups.values():
        each = max(bytes_per_run[index] for index in group)
        most = len(group)
        if cache is not None:
            most = max(_AMORTISED, cache // each) if each <= cache else 1
        size = max(1, min(budget // each, most))
        number = -(-len(group) // size)
        cuts = [len(group) * k // number for k in range(number + 1)]
        batches += [group[start:end] for start, end in itertools.pairwise(cuts)]
    return batches


def _shape(config: RunConfig) -> tuple[object, ...]:
    """What must be equal in a batch; without dropout a training step shares the evaluation's forward pass."""
    family = _family(config)
    assert family is not None
    sizes = [getattr(config.parameters, name) for name in family.equal]
    return config.model, *sizes, find_model(config.model).may_share(config.parameters)


def _family(config: RunConfig) -> Family | None:
    return find_model(config.model).family_of(config.parameters)


def _one_per_run(splits: SplitLike | Sequence[SplitLike], runs: int) -> list[SplitLike]:
    if not isinstance(splits, Sequence):
        return [splits] * runs
    if len(splits) != runs:
        raise InputError(
            f"splits has {len(splits)} entries for {runs} runs: give one for all runs, or one per run"
        )
    return list(splits)


class _Meter:
    """Reports the progress of a call of ``train_runs``."""

    def __init__(self, progress: ProgressCallback | None, runs: int) -> None:
        self._progress = progress
        self._runs = runs
        self._start = time.perf_counter()
        self.done = 0
        """Runs of the batches that are through."""

    def __call__(self, batch: Batch) -> None:
        if self._progress is None:
            return
        active, runs = len(batch.active), self._runs
        finished = self.done + batch.size - active
        part = active * batch.epoch / batch.max_epochs
        self._progress(
            Progress(
                runs=runs,
                finished=finished,
                epoch=batch.epoch,
                max_epochs=batch.max_epochs,
                active=active,
                best_score=batch.best_score,
                done=(finished + part) / runs,
                seconds=time.perf_counter() - self._start,
            )
        )
