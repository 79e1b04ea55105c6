"""One batch of runs: stacked parameters, targets and early stopping per run, finished runs dropped."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from plap.data.tasks import Task
from plap.models import find_model
from plap.models.stacked import State
from plap.split_masks import SplitLike
from plap.training.adam import StackedAdam
from plap.training.config import RunConfig
from plap.training.devices import wide
from plap.training.epochs import Active, Epochs, epochs_of, make_targets
from plap.training.inputs import Inputs, RunSettings
from plap.training.modules import SingleModule, build_module
from plap.training.results import History, RunResult
from plap.training.stopping import EarlyStopping


class Batch:
    """Runs that are trained together, each by its own configuration on its own split.

    Parameters
    ----------
    inputs : Inputs
    y : Tensor
        Labels; only those of training and validation nodes are read.
    task : Task
    configs, splits : one of each per run
        A single run if the model has no stacked form.
    propagation_budget : int, optional
        See :class:`plap.training.inputs.RunSettings`.
    """

    def __init__(
        self,
        inputs: Inputs,
        y: Tensor,
        task: Task,
        configs: Sequence[RunConfig],
        splits: Sequence[SplitLike],
        propagation_budget: int | None = None,
    ) -> None:
        self._inputs, self._configs = inputs, list(configs)
        self._propagation_budget = propagation_budget
        self._kind = find_model(configs[0].model)
        modules = [build_module(config, inputs.num_features, task.num_outputs) for config in configs]
        self._family = self._kind.family_of(configs[0].parameters) or SingleModule(
            self._kind, modules[0], inputs, task.num_outputs
        )
        self._device = inputs.graph.device
        parameters, self._buffers = (
            {name: value.to(self._device) for name, value in part.items()}
            for part in self._family.stack(modules, inputs.dtype)
        )
        self._names = tuple(parameters)
        train, val = ([getattr(split, name) for split in splits] for name in ("train", "val"))
        self._train = make_targets(task, train, y, inputs.dtype, training=True).to(self._device)
        self._val = make_targets(task, val, y, inputs.dtype).to(self._device)
        self._adam = StackedAdam(
            list(parameters.values()),
            torch.tensor([config.lr for config in configs], dtype=torch.float64),
            torch.tensor([config.weight_decay for config in configs], dtype=torch.float64),
        )
        count = len(configs)
        self.active = np.arange(count)
        """The runs of the batch that are still being trained."""
        self._stopping = EarlyStopping(configs)
        self._best = {name: value.clone() for name, value in (parameters | self._buffers).items()}
        self._finished: dict[int, RunResult] = {}
        self._history = np.empty((min(self.max_epochs, 256), count, 3))
        self._seconds = np.zeros(count)
        self._epochs: Epochs | None = None
        self._begin()

    @property
    def size(self) -> int:
        """Number of its runs."""
        return len(self._configs)

    @property
    def epoch(self) -> int:
        """Epochs that have been trained."""
        return self._stopping.epoch

    @property
    def max_epochs(self) -> int:
        """Epochs that the longest run may take."""
        return max(config.max_epochs for config in self._configs)

    @property
    def best_score(self) -> float:
        """Best validation score among the active runs."""
        return float(self._stopping.best_score.max(initial=-np.inf))

    def train_epoch(self) -> list[int]:
        """Train every active run for one step, then validate; returns the runs that have ended."""
        start = time.perf_counter()
        assert self._epochs is not None, "all runs have ended"
        train_loss, val_loss, val_score = read(self._epochs.step(self.epoch), *self._epochs.validate())
        better = self._stopping.note(val_loss, val_score)
        self._record(train_loss, val_loss, val_score)
        self._remember(better)
        self._seconds[self.active] += (time.perf_counter() - start) / len(self.active)
        return self._drop_finished()

    def result(self, run: int) -> RunResult:
        """The result of a run that has ended."""
        return self._finished[run]

    def results(self, *, out_of_time: bool = False) -> list[RunResult]:
        """One result per run; runs that are still active end here, interrupted or out of time."""
        self._epochs = None
        if len(self.active):
            self._finish(np.arange(len(self.active)), interrupted=not out_of_time, out_of_time=out_of_time)
            self.active = self.active[:0]
        return [self._finished[run] for run in range(len(self._configs))]

    def _begin(self) -> None:
        """Prepare everything that depends on which runs are active."""
        configs = [self._configs[run] for run in self.active]
        self._epochs = epochs_of(
            self._family,
            Active(
                self._inputs,
                self._settings_of(configs),
                self._adam,
                self._names,
                self._buffers,
                self._train,
                self._val,
                shared=all(self._kind.may_share(config.parameters) for config in configs),
            ),
        )

    def _settings_of(self, configs: Sequence[RunConfig]) -> RunSettings:
        return RunSettings(configs, self._inputs.dtype, self._propagation_budget, self._device)

    def _remember(self, better: np.ndarray) -> None:
        """Keep the parameters of the runs whose best epoch this is."""
        if not len(better):
            return
        runs = torch.from_numpy(better).to(self._device)
        now = [*self._adam.parameters, *self._buffers.values()]
        for value, kept in zip(now, self._best.values(), strict=True):
            if len(better) == len(self.active):
                kept.copy_(value)
            else:
                kept.index_copy_(0, runs, value.index_select(0, runs))

    def _drop_finished(self) -> list[int]:
        over = self._stopping.over
        if not over.any():
            return []
        self._epochs = None  # its memory is needed for what the runs say of all nodes
        self._finish(np.flatnonzero(over))
        stay = np.flatnonzero(~over)
        through: list[int] = self.active[over].tolist()
        self.active = self.active[stay]
        if not len(stay):
            return through
        runs = torch.from_numpy(stay).to(self._device)
        self._best = {name: value[runs] for name, value in self._best.items()}
        self._buffers = {name: value[runs] for name, value in self._buffers.items()}
        self._stopping.keep(stay)
        self._adam.keep(runs)
        self._train, self._val = self._train.keep(runs), self._val.keep(runs)
        self._begin()
        return through

    @torch.no_grad()
    def _finish(self, positions: np.ndarray, *, interrupted: bool = False, out_of_time: bool = False) -> None:
        """Results of the runs at these positions among the active ones."""
        chosen = torch.from_numpy(positions).to(self._device)
        state = {name: value[chosen] for name, value in self._best.items()}
        logits = self._logits_of(state, positions).cpu()
        state = {name: value.cpu() for name, value in state.items()}
        for k, position in enumerate(positions):
            run = int(self.active[position])
            history = self._history_of(run)
            self._finished[run] = RunResult(
                config=self._configs[run],
                best_epoch=int(self._stopping.best_epoch[position]),
                epochs=history.train_loss.shape[0],
                seconds=float(self._seconds[run]),
                history=history,
                val_score=float(self._stopping.best_score[position]),
                val_loss=float(self._stopping.best_loss[position]),
                state=self._family.unstack(state, k),
                logits=logits[k].clone(),
                interrupted=interrupted,
                out_of_time=out_of_time,
            )

    def _logits_of(self, state: State, positions: np.ndarray) -> Tensor:
        settings = self._settings_of([self._configs[self.active[k]] for k in positions])
        nodes = torch.arange(self._inputs.graph.num_nodes, device=self._device)
        rows = nodes.expand(len(positions), -1)
        embedding = self._family.embed(state, self._inputs)
        return self._family.head(state, self._inputs, settings, embedding, None, rows)

    def _record(self, *values: np.ndarray) -> None:
        """Append the values of the epoch that has just ended to the history."""
        if self.epoch > len(self._history):
            self._history = np.concatenate([self._history, np.empty_like(self._history)])
        self._history[self.epoch - 1, self.active] = np.stack(values, axis=1)

    def _history_of(self, run: int) -> History:
        return History(*torch.from_numpy(self._history[: self.epoch, run].T.copy()).unbind(0))


def not_begun(config: RunConfig, inputs: Inputs, task: Task) -> RunResult:
    """The result of a run whose time was over before its first epoch."""
    none = torch.zeros(0, dtype=torch.float64)
    state = build_module(config, inputs.num_features, task.num_outputs).state_dict()
    logits = torch.zeros((), dtype=inputs.dtype).expand(inputs.graph.num_nodes, task.num_outputs)
    return RunResult(
        config, 0, 0, 0.0, History(none, none, none), -np.inf, np.inf, state, logits, out_of_time=True
    )


def read(*values: Tensor) -> tuple[np.ndarray, ...]:
    """Numbers of every run, [R] each, as float64 on the CPU; one transfer for all of one device."""
    if all(value.device.type == "cpu" for value in values):
        return tuple(value.double().numpy() for value in values)
    device = values[0].device
    together = torch.stack([value.to(device, wide(device)) for value in values])
    return tuple(together.cpu().double().numpy())
