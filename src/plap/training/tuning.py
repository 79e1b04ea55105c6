"""Hyperparameter search: successive halving over batches of runs."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from typing import Literal, Protocol

import torch
from torch import Tensor

from plap.data.tasks import Task, training_task
from plap.errors import InputError, MemoryBudgetError
from plap.graph import Graph
from plap.memory import MemoryBudget
from plap.nn.linear import Features
from plap.split_masks import BaggedSplit, SplitLike
from plap.training import halving
from plap.training.config import RunConfig
from plap.training.devices import usual_arithmetic
from plap.training.halving import Rung
from plap.training.loop import ProgressCallback, epoch_cost
from plap.training.results import RunResult, Trial, TuneResult, part_of
from plap.training.space import SearchSpace, count_models, draw_from, near_to, sharing
from plap.training.stopping import Deadline, TimeLimit
from plap.training.workers import pays, processes_for, train_side_by_side

_CLIMBS = 2
"""How often what is nearest to the best of the first rung is tried, where a space is out of the running."""

_OF_TIME = 0.75
"""Share of a time limit that the search takes; the rest is for training its winner with further seeds."""
_PROBE = 2
"""Epochs that tell what an epoch costs."""
_CHEAP = 0.1
"""Seconds of an epoch below which a batch of runs is tried as well, because it costs less per run."""


class _Train(Protocol):
    def __call__(
        self, runs: list[RunConfig], limit: Deadline, report: ProgressCallback | None = None
    ) -> list[RunResult]: ...


@usual_arithmetic()
def tune(
    graph: Graph,
    x: Features,
    y: Tensor,
    split: SplitLike,
    *,
    space: SearchSpace | Sequence[SearchSpace] | None = None,
    seed: int = 0,
    budget: int | Literal["auto"] = "auto",
    num_classes: int | None = None,
    task: Task | None = None,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "auto",
    memory_budget: MemoryBudget = None,
    progress: ProgressCallback | None = None,
    time_limit: TimeLimit = None,
) -> TuneResult:
    """Search for the configuration with the best validation score.

    Successive halving: many configurations of the space are drawn at random and trained for a few epochs, the
    better ones longer, the few best to the end with several seeds each. Of these, the one with the best mean
    validation score wins; of equally good ones one that does without edges, such as an MLP. A lower
    validation loss makes up for a slightly lower score, the less the more validation nodes there are: with
    few of them many candidates score about the same, and the loss tells them apart. Finalists that validation
    cannot distinguish from the winner are returned too. Penalties of a pGNN are tried in addition to its
    powers: a search of pGNN alone tries all powers that it would try without them. Several
    models share the budget, a large one counting as many small ones; the spaces of one model share its part.
    The best of each space goes on to the end, unless it is clearly worse than the best of all: then
    configurations that differ from the best in a single value are tried as well, twice, and the best of these
    go on instead. A model without edges is tried in addition to the others. The best of all, and the best
    penalty if it is among the two best, are tried once more with more hidden units, where their space has
    ``widen`` and there is time. Only labels of training and validation nodes are read.

    Parameters
    ----------
    graph, x, y, split :
        As for :func:`plap.training.train_runs`, with one split. A :class:`plap.split_masks.BaggedSplit` is
        divided anew by every seed of the last rung.
    space : SearchSpace, or a sequence of them, optional
        By default the search grid of pGNN, see ``plap.models.pgnn``. :func:`architectures` has those of a
        model that has several.
    seed : int
        Random seed for the draw and for training.
    budget : int or "auto"
        Approximate number of epochs to spend over all runs; at least two configurations reach the last
        rung whatever the budget. By default, fewer epochs on larger graphs. An epoch of a larger model than
        the first one counts as several. The penalties of a pGNN are tried in addition: for a ninth of
        it, and more where they are among the best. So are a model without edges, and what is near to the
        best where a space is clearly worse, each time for as much as the first rung at most. Runs with
        more hidden units, three or six of them, come in addition too.
    num_classes, task, dtype, device, memory_budget, progress :
        As for :func:`plap.training.train_runs`.
    time_limit : number of seconds, or text such as "10m", optional
        The search is made as wide as fits into three quarters of it, by what an epoch turns out to cost, and
        ends then. Where the finalists have no time for all of their seeds, they take the rest of it as well,
        the first seed of each before the second. Where less than a whole search fits, a few candidates of the
        first space are tried for some epochs, and the best of them is trained for the rest of the time.
        Results then depend on the speed of the machine.

    Returns
    -------
    TuneResult
        After Ctrl-C, the best configuration so far.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.5, n=100, f=10, seed=1)
    >>> spaces = [SearchSpace(RunConfig("mlp", max_epochs=5)), SearchSpace(RunConfig("gcn", max_epochs=5))]
    >>> found = tune(data.graph, data.x, data.y, plap.data.split(data), space=spaces, budget=60)
    >>> sorted({trial.config.model for trial in found.trials})
    ['gcn', 'mlp']
    """
    spaces = [SearchSpace(RunConfig(seed=seed))] if space is None else space
    spaces = [spaces] if isinstance(spaces, SearchSpace) else spaces
    if not (isinstance(spaces, Sequence) and spaces and all(isinstance(s, SearchSpace) for s in spaces)):
        raise InputError(f"space must be a SearchSpace or a list of at least one, not {space!r}")
    spaces = list(spaces)
    deadline = whole = Deadline.of(time_limit)
    halving.check_budget(budget)
    epochs = halving.usual_budget(graph, x, count_models(spaces)) if budget == "auto" else budget
    task = training_task(y, [split], graph.num_nodes, num_classes, task)
    options = {"task": task, "dtype": dtype, "device": device, "memory_budget": memory_budget}

    def train(
        runs: list[RunConfig], limit: Deadline, report: ProgressCallback | None = None
    ) -> list[RunResult]:
        return train_side_by_side(graph, x, y, runs, split, progress=report, time_limit=limit, **options)

    best_run: RunResult | None = None
    hurried = False
    if deadline.is_set:
        first = spaces[0].base.with_values(seed=seed)
        best_run, affordable = _probe(first, spaces, train, deadline, graph, x)
        hurried = affordable < min(halving.LEAST_EPOCHS, epochs)
        deadline = deadline if hurried else deadline.part(_OF_TIME)
        affordable = affordable if hurried else int(_OF_TIME * affordable)
        spaces = spaces[:1] if hurried else spaces
        epochs = affordable if budget == "auto" else min(epochs, affordable)
        if best_run.interrupted:
            return TuneResult(first, (Trial.of(best_run, 0),), best_run, interrupted=True)
    val_nodes = int(split.val.sum())
    seeds = halving.seeds_per_finalist(val_nodes, bagged=isinstance(split, BaggedSplit))
    available = sum(len(space.configs()) for space in spaces)
    rungs = (
        halving.hurried_rungs(epochs)
        if hurried
        else halving.plan_rungs(epochs, available, len(sharing(spaces)), seeds)
    )
    drawn = draw_from(spaces, rungs[0].configs, seed, graph, x, hurried=hurried)
    stages = _Stages(
        train, deadline, len(rungs), whole=whole, nodes=graph.num_nodes, progress=progress, best_run=best_run,
        may_climb=len(spaces) > 1, may_widen=any(space.widened(space.base) for space in spaces),
    )  # fmt: skip
    return _Halving(graph, x, spaces, drawn, task, val_nodes).run(rungs, stages)


class _Halving:
    """The candidates of a search and what validation says of them, from the first rung to the last."""

    def __init__(
        self,
        graph: Graph,
        x: Features,
        spaces: Sequence[SearchSpace],
        drawn: dict[RunConfig, int],
        task: Task,
        val_nodes: int,
    ) -> None:
        self._graph, self._x, self._spaces = graph, x, spaces
        self._task, self._val_nodes = task, val_nodes
        self._space_of: dict[RunConfig, int] = {}
        self._added: set[RunConfig] = set()
        self._alive: list[RunConfig] = []
        self._take_in(drawn)

    def run(self, rungs: Sequence[Rung], stages: _Stages) -> TuneResult:
        """Train the candidates, each rung fewer of them for longer."""
        results: list[RunResult] = []
        for number, rung in enumerate(rungs):
            following = rungs[number + 1 :]
            results = stages.run(self._alive, rung, number)
            if stages.interrupted and number > 0:
                break
            if not following:
                results = self._widen(results, rung, number, stages)
            behind = self._behind(results, rung.seeds) if following else set()
            if number == 0:
                results = self._climb(results, rung, stages, behind)
            order = self._ranked(results, rung.seeds)
            self._alive = self._survivors(order, behind, following) if following else order
            if stages.interrupted:
                break
        else:
            return self._result(results, rungs[-1].seeds, stages)
        return TuneResult(self._alive[0], tuple(stages.trials), stages.best_run, interrupted=True)

    def _climb(
        self, results: list[RunResult], rung: Rung, stages: _Stages, behind: Set[int]
    ) -> list[RunResult]:
        """Try what is near to the best where spaces are behind, then what is near to the best of that too.

        A space without edges does not count: it frees next to nothing.
        """
        results = list(results)
        allowance = sum(
            epoch_cost(config, self._graph.num_nodes)
            for config in self._alive
            if config.uses_edges and config not in self._added
        )
        steps = _CLIMBS if any(self._spaces[k].base.uses_edges for k in behind) else 0
        for _ in range(steps):
            leader = next(
                (
                    config
                    for config in self._ranked(results, rung.seeds)
                    if config.uses_edges and self._space_of[config] not in behind
                ),
                None,
            )
            if leader is None or stages.interrupted:
                break
            near = near_to(leader, self._spaces, self._space_of, self._graph, self._x, allowance)
            if not near:
                break
            self._take_in(near)
            results += stages.run(list(near), rung, 0, near=True)
        return results

    def _widen(self, results: list[RunResult], rung: Rung, number: int, stages: _Stages) -> list[RunResult]:
        """Try the best of the last rung with more hidden units, if its space says so.

        The best penalty is tried too where it ranks first or second; that takes nothing from the others.
        """
        if stages.interrupted:
            return results
        order = self._ranked(results, rung.seeds)
        usual = [config for config in order if config not in self._added]
        further = [config for config in order[:2] if config in self._added]
        wider: dict[RunConfig, int] = {}
        for config in (*usual[:1], *further[:1]):
            space = self._space_of[config]
            wide = self._spaces[space].widened(config)
            if wide and wide not in self._space_of and stages.have_time([*wider, wide], rung):
                wider[wide] = space
        if not wider:
            return results
        try:
            more = stages.run(list(wider), rung, number, near=True)
        except MemoryBudgetError:  # which is enough for fewer units
            return results
        if len(more) < rung.seeds * len(wider) or any(run.interrupted or run.out_of_time for run in more):
            return results
        self._take_in(wider)
        return [*results, *more]

    def _take_in(self, candidates: dict[RunConfig, int]) -> None:
        self._space_of |= candidates
        self._alive += candidates
        self._added |= {config for config, k in candidates.items() if self._spaces[k].in_addition(config)}

    def _behind(self, results: Sequence[RunResult], seeds: int) -> set[int]:
        return halving.behind(self._alive, results, seeds, self._space_of, self._val_nodes, self._task)

    def _ranked(self, results: Sequence[RunResult], seeds: int) -> list[RunConfig]:
        return halving.ranked(self._alive, results, seeds, self._val_nodes, self._added)

    def _survivors(
        self, order: Sequence[RunConfig], behind: Set[int], following: Sequence[Rung]
    ) -> list[RunConfig]:
        """Who goes on; places of spaces that are behind go to the next best, two of which reach the end."""
        return halving.survivors(
            [config for config in order if self._space_of[config] not in behind],
            self._added,
            self._space_of,
            following[0].configs,
            self._spaces,
            self._graph.num_nodes,
            least=len(sharing(self._spaces)) if len(following) > 1 else 2,
        )

    def _result(self, results: Sequence[RunResult], seeds: int, stages: _Stages) -> TuneResult:
        """The best of those that are left, and the others that are as good, with edges if it has them."""
        last = {run.config: run for run in results if run.best_epoch > 0}

        def runs_of(config: RunConfig) -> list[RunResult]:
            each = (config.with_values(seed=config.seed + k) for k in range(seeds))
            return halving.lasting([last[run] for run in each if run in last])

        best = self._alive[0]
        runners_up = tuple(
            other
            for other in self._alive[1:]
            if other.uses_edges == best.uses_edges
            and not any(run.out_of_time for run in runs_of(other))
            and halving.as_good(runs_of(best), runs_of(other), self._val_nodes, self._task)
        )
        finalists = tuple(run for config in (best, *runners_up) for run in runs_of(config))
        return TuneResult(
            best, tuple(stages.trials), stages.best_run, runners_up=runners_up, finalists=finalists
        )


class _Stages:
    """Trains the runs of a search, one stage after another, and keeps what they came to.

    A stage is a rung; after the first one, what is near to its leader; after the last, its best with more
    units.
    """

    def __init__(
        self,
        train: _Train,
        deadline: Deadline,
        rungs: int,
        *,
        whole: Deadline,
        nodes: int,
        progress: ProgressCallback | None,
        best_run: RunResult | None,
        may_climb: bool,
        may_widen: bool,
    ) -> None:
        self._train, self._deadline, self._whole, self._progress = train, deadline, whole, progress
        self._nodes, self._rungs, self._may_climb, self._may_widen = nodes, rungs, may_climb, may_widen
        self._best = [] if best_run is None else [best_run]
        self._seconds = self._cost = 0.0
        self.trials: list[Trial] = []
        self.interrupted = False

    def run(
        self, configs: Sequence[RunConfig], rung: Rung, number: int, *, near: bool = False
    ) -> list[RunResult]:
        """All seeds of the first configuration, then those of the second, and so on.

        Where there is no time to train every seed to its end, each configuration gets its first one before
        the next, and nothing is left of the time for what follows a search.
        """
        limit = self._deadline.part(1 / (self._rungs - number + near))
        stage = number + self._may_climb * (number > 0 or near) + (near and number == self._rungs - 1)
        stages = self._rungs + self._may_climb + self._may_widen
        passes = [range(rung.seeds)]
        if rung.seeds > 1 and self._expected(configs, rung) > limit.left:
            limit, passes = self._whole, [range(k, k + 1) for k in passes[0]]
        done: dict[RunConfig, RunResult] = {}
        for turn, seeds in enumerate(passes):
            if self.interrupted:
                break
            runs = [_shortened(config, rung, k) for config in configs for k in seeds]
            begin, end = (stage + turn / len(passes)) / stages, (stage + (turn + 1) / len(passes)) / stages
            firsts = {_shortened(config, rung, 0) for config in configs}
            done |= zip(runs, self._timed(runs, firsts, limit, begin, end), strict=True)
        wanted = (_shortened(config, rung, k) for config in configs for k in range(rung.seeds))
        results = [done[run] for run in wanted if run in done]
        self.trials += [Trial.of(r, number) for r in results if r.epochs or not r.out_of_time]
        return results

    def _timed(
        self, runs: list[RunConfig], firsts: Set[RunConfig], limit: Deadline, begin: float, end: float
    ) -> list[RunResult]:
        started = time.perf_counter()
        results = self._train(runs, limit, part_of(self._progress, begin, end))
        self._seconds += time.perf_counter() - started
        self._cost += sum(result.epochs * epoch_cost(result.config, self._nodes) for result in results)
        # seeds of a bagged split are judged on nodes of their own, so first ones compare with first ones
        usual = [result for result in results if result.config in firsts]
        self._best = [max([*usual, *self._best], key=_merit)]
        self.interrupted = any(result.interrupted for result in results)
        return results

    def have_time(self, configs: Sequence[RunConfig], rung: Rung) -> bool:
        """Whether all seeds of a last rung are likely to end in half of the time that is left."""
        return not self._deadline.is_set or 2 * self._expected(configs, rung) <= self._deadline.left

    def _expected(self, configs: Sequence[RunConfig], rung: Rung) -> float:
        """Seconds that all seeds of the last rung take, by what was trained before."""
        costs = (
            min(config.max_epochs, halving.FINAL_EPOCHS) * epoch_cost(config, self._nodes)
            for config in configs
        )
        return rung.seeds * sum(costs) * self._seconds / max(self._cost, 1.0)

    @property
    def best_run(self) -> RunResult:
        """The best run of all stages."""
        return self._best[0]


def _probe(
    first: RunConfig,
    spaces: Sequence[SearchSpace],
    train: _Train,
    deadline: Deadline,
    graph: Graph,
    x: Features,
) -> tuple[RunResult, int]:
    """A first model, and how many epochs of a run fit into the time that is left.

    Everything is trained twice, and the second time counts: nothing is left to load or compile then.
    """
    (result,) = train([first.with_values(max_epochs=_PROBE)], deadline)
    again = train([first.with_values(max_epochs=_PROBE)], deadline)
    cost = again[0].seconds / max(1, again[0].epochs)
    if cost < _CHEAP and not deadline.passed:
        several = [c.with_values(max_epochs=_PROBE) for c in draw_from(spaces, 16, first.seed, graph, x)]
        train(several, deadline)
        begin = time.perf_counter()
        results = train(several, deadline)
        cost = (time.perf_counter() - begin) / max(1, sum(result.epochs for result in results))
        if not pays(graph, several, {}):
            cost /= processes_for(graph)  # too little for several processes, unlike what follows
    return result, int(deadline.left / max(cost, 1e-6))


def _merit(result: RunResult) -> tuple[bool, float, float]:
    return result.best_epoch > 0, result.val_score, -result.val_loss


def _shortened(config: RunConfig, rung: Rung, k: int) -> RunConfig:
    """``config`` with the limits of a rung and its k-th seed."""
    limit = min(rung.epochs or config.max_epochs, config.max_epochs)
    return config.with_values(max_epochs=limit, seed=config.seed + k)
