"""How the active runs of a batch take a training step and an evaluation: by autograd, or by hand.

Most models are written as what they compute, and autograd does the rest, which takes longer than the
computation on small graphs. Models of the form :class:`plap.models.stacked.TwoMaps`, which a search trains
thousands of times, therefore go backward by hand on the CPU: nothing is recorded, and all epochs use the same
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from plap.data.tasks import Task
from plap.kernels.fused.calling import compiled_for, padded
from plap.kernels.registry import repeated_steps
from plap.models.stacked import Family, State, TwoMaps
from plap.training import native
from plap.training.adam import StackedAdam
from plap.training.devices import wide
from plap.training.inputs import Inputs, RunSettings
from plap.training.modules import SingleModule


@dataclass(frozen=True, eq=False)
class Targets:
    """The labelled nodes of R runs, padded to equal length; loss and score at these nodes."""

    task: Task
    rows: Tensor
    """Node indices [R, T]."""
    labels: Tensor
    """Classes int64 [R, T], 0 and 1 as floats [R, T, L], or numbers as floats [R, T]."""
    present: Tensor
    """[R, T], 1 for a node and 0 for padding."""
    weight: Tensor
    """Of each node in the loss; the sum over a run's nodes is 1."""

    def loss(self, logits: Tensor) -> Tensor:
        """Mean loss [R] of logits [R, T, L], each node by its weight."""
        return (self.task.losses(logits, self.labels) * self.weight).sum(1)

    def score(self, logits: Tensor) -> Tensor:
        """The task's metric [R], negated where lower is better; float64.

        A metric that is no ratio of sums is computed on the CPU, wherever the logits are.
        """
        if logits.device.type == "mps" or not self.task.decomposes:
            return self.task.merits(logits.cpu(), self.labels.cpu(), self.present.cpu())
        return self.task.merits(logits, self.labels, self.present)

    def to(self, device: torch.device) -> Targets:
        """The same on another device."""
        if device.type == "cpu":
            return self
        present = self.present.to(device, wide(device))
        return Targets(
            self.task, self.rows.to(device), self.labels.to(device), present, self.weight.to(device)
        )

    def keep(self, runs: Tensor) -> Targets:
        """The targets of these runs only."""
        return Targets(self.task, self.rows[runs], self.labels[runs], self.present[runs], self.weight[runs])


def make_targets(
    task: Task, masks: Sequence[Tensor], y: Tensor, dtype: torch.dtype, *, training: bool = False
) -> Targets:
    """The nodes of one mask per run, ascending, and their labels; in ``training`` classes have weights."""
    nodes = [mask.nonzero().squeeze(1) for mask in masks]
    longest = max(index.shape[0] for index in nodes)
    rows = torch.zeros(len(nodes), longest, dtype=torch.int64)
    present = torch.zeros(len(nodes), longest, dtype=torch.float64)
    for run, index in enumerate(nodes):
        rows[run, : index.shape[0]] = index
        rows[run, index.shape[0] :] = index[0]
        present[run, : index.shape[0]] = 1
    labels = y[rows]
    weights = task.weights(labels) if training else None
    counted = present if weights is None else present * weights
    weight = (counted / counted.sum(1, keepdim=True)).to(dtype)
    if labels.ndim == 3:
        labels = labels.to(dtype)
    elif not labels.is_floating_point():
        labels = labels.long()
    return Targets(task, rows, labels, present, weight)


class Epochs(Protocol):
    """Trains and evaluates the active runs of a batch."""

    def step(self, epoch: int) -> Tensor:
        """Change the parameters of every run once; returns the training losses [R] before that."""
        ...

    def validate(self) -> tuple[Tensor, Tensor]:
        """Loss and score [R] at the validation nodes with the parameters as they are."""
        ...


@dataclass(frozen=True, eq=False)
class Active:
    """The active runs of a batch, and what they are trained on."""

    inputs: Inputs
    settings: RunSettings
    adam: StackedAdam
    """Has the parameters."""
    names: tuple[str, ...]
    """Of the parameters, in Adam's order."""
    buffers: State
    train: Targets
    val: Targets
    shared: bool
    """Whether a training step computes what an evaluation does, because nothing is dropped."""

    @property
    def rows(self) -> Tensor:
        """The nodes [R, T] that a training step looks at, those for training first."""
        return torch.cat([self.train.rows, self.val.rows], 1) if self.shared else self.train.rows


def epochs_of(family: Family | SingleModule, runs: Active) -> Epochs:
    """By hand where that is possible, else by autograd."""
    by_hand = ByHand.of(family.two_maps, runs) if isinstance(family, Family) and family.two_maps else None
    return by_hand or Tape(family, runs)


class Tape:
    """By autograd: any model, any device."""

    def __init__(self, family: Family | SingleModule, runs: Active) -> None:
        self._family, self._runs = family, runs
        self._rows = runs.rows
        self._embed()

    def step(self, epoch: int) -> Tensor:
        """See :class:`Epochs`."""
        train = self._runs.train
        if self._runs.shared:
            logits = self._logits[:, : train.rows.shape[1]]
        else:
            logits = self._head(self._embedding, epoch, self._rows)
        losses = train.loss(logits)
        gradients = torch.autograd.grad(losses.sum(), self._leaves, materialize_grads=True)
        self._runs.adam.step(gradients)
        self._embed()
        return losses.detach()

    @torch.no_grad()
    def validate(self) -> tuple[Tensor, Tensor]:
        """See :class:`Epochs`."""
        val = self._runs.val
        if self._runs.shared:
            logits = self._logits[:, self._runs.train.rows.shape[1] :]
        else:
            logits = self._head(self._embedding.detach(), None, val.rows)
        return val.loss(logits), val.score(logits)

    def _embed(self) -> None:
        """Evaluate what the next training step and the validation before it have in common."""
        self._leaves = [value.detach().requires_grad_() for value in self._runs.adam.parameters]
        self._state = dict(zip(self._runs.names, self._leaves, strict=True)) | self._runs.buffers
        self._embedding = self._family.embed(self._state, self._runs.inputs)
        if self._runs.shared:
            self._logits = self._head(self._embedding, None, self._rows)

    def _head(self, embedding: Tensor, epoch: int | None, rows: Tensor) -> Tensor:
        return self._family.head(self._state, self._runs.inputs, self._runs.settings, embedding, epoch, rows)


class ByHand:
    """Two linear maps with ReLU, dropout and p-Laplacian steps S between them, backward by hand.

    The logits are S(drop(relu(X Θ₁ + b₁))) Θ₂ + b₂ at some rows: what :class:`Tape` computes, up to rounding.
    """

    def __init__(self, form: TwoMaps, runs: Active, steps: Steps, evaluation: Evaluation) -> None:
        self._runs, self._steps, self._evaluation = runs, steps, evaluation
        names = _names(form)
        self._parameters = [runs.names.index(name) for name in names]
        self._order = [names.index(name) for name in runs.names]
        width = runs.adam.parameters[self._parameters[1]].shape[1]
        self._hidden = evaluation.start[..., :width]
        self._dropped = steps.start[..., :width]
        self._slopes = torch.zeros_like(steps.start)
        self._factors = 1 / (1 - runs.settings.column("dropout"))
        self._embed()

    @classmethod
    def of(cls, form: TwoMaps, runs: Active) -> ByHand | None:
        """None on another device, where memory is short, and for other parameters."""
        settings, inputs = runs.settings, runs.inputs
        on_cpu, task = compiled_for(inputs.graph.device), runs.train.task
        if (
            on_cpu
            and task.one_class_per_node
            and not all(_are_classes(targets.labels, task.num_outputs) for targets in (runs.train, runs.val))
        ):
            return None
        if not on_cpu or settings.propagation_budget is not None or {*runs.names} != {*_names(form)}:
            return None
        width = runs.adam.parameters[runs.names.index(f"{form.first}.bias")].shape[1]
        like = torch.empty(1, dtype=inputs.dtype).expand(len(settings.configs), inputs.graph.num_nodes, width)
        if form.steps is None:
            start = torch.zeros(*like.shape[:2], padded(width), dtype=like.dtype)
            return cls(form, runs, NoSteps(start), NoSteps(start if runs.shared else start.clone()))
        steps = repeated_steps(like, inputs.graph, *form.steps(settings), runs.rows)
        if steps is None:
            return None
        return cls(form, runs, steps, steps if runs.shared else steps.without_gradient(runs.val.rows))

    @torch.no_grad()
    def step(self, epoch: int) -> Tensor:
        """See :class:`Epochs`."""
        runs = self._runs
        if not runs.shared:
            rates = runs.settings.column("dropout")
            mask = runs.settings.masks(epoch, 0, rates, (self._hidden.shape[1], self._hidden.shape[2]))
            torch.mul(self._hidden, mask, out=self._dropped)
            del mask
            self._result = self._steps.forward()
        losses, of_theta2, of_bias2 = self._lose()
        back = self._steps.backward(self._slopes)[..., : self._hidden.shape[2]]
        # the factors of dropout have gone through the steps, which are linear on their way back
        back = torch.ops.aten.threshold_backward(back, self._dropped, 0)
        gradients = (runs.inputs.transposed_times(back), back.sum(1), of_theta2, of_bias2)
        runs.adam.step([gradients[k] for k in self._order])
        self._embed()
        return losses

    @torch.no_grad()
    def validate(self) -> tuple[Tensor, Tensor]:
        """See :class:`Epochs`."""
        val = self._runs.val
        if not val.task.one_class_per_node:
            logits = self._logits(self._seen(val))
            return val.loss(logits), val.score(logits)
        _, _, theta2, bias2 = self._values()
        losses, logits = native.classify(val.rows, val.labels, val.weight, self._result, theta2, bias2)
        return losses, val.score(logits)

    def _lose(self) -> tuple[Tensor, Tensor, Tensor]:
        """The training losses and their gradients in Θ₂ and b₂; those in the states go to ``_slopes``."""
        train = self._runs.train
        _, _, theta2, bias2 = self._values()
        self._slopes.zero_()
        if train.task.one_class_per_node:
            return native.classify_and_return(
                train.rows, train.labels, train.weight, self._result, theta2, bias2, self._slopes,
                self._factors,
            )  # fmt: skip
        seen = self._seen(train)
        logits = self._logits(seen).requires_grad_()
        with torch.enable_grad():
            losses = train.loss(logits)
            (slope,) = torch.autograd.grad(losses.sum(), [logits])
        back = (slope @ theta2.mT) * self._factors[:, None, None]
        self._slopes.scatter_add_(1, _places(train.rows, back.shape[2]), back)
        return losses.detach(), seen.mT @ slope, slope.sum(1)

    def _seen(self, targets: Targets) -> Tensor:
        """The states of the labelled nodes, [R, T, C]."""
        return self._result.gather(1, _places(targets.rows, self._hidden.shape[2]))

    def _logits(self, seen: Tensor) -> Tensor:
        _, _, theta2, bias2 = self._values()
        return torch.baddbmm(bias2.unsqueeze(1), seen, theta2)

    def _embed(self) -> None:
        """Evaluate the parameters up to the last map."""
        theta1, bias1, _, _ = self._values()
        torch.add(self._runs.inputs.times_features(theta1), bias1.unsqueeze(1), out=self._hidden).relu_()
        self._result = self._evaluation.forward()

    def _values(self) -> list[Tensor]:
        """Θ₁ [R, F, C], b₁ [R, C], Θ₂ [R, C, L], b₂ [R, L]."""
        return [self._runs.adam.parameters[k] for k in self._parameters]


class Evaluation(Protocol):
    """What :class:`plap.kernels.row_backend.ForwardOnly` does."""

    start: Tensor

    def forward(self) -> Tensor:
        """Where the steps end, [R, N, padded C]."""
        ...


class Steps(Evaluation, Protocol):
    """What :class:`plap.kernels.row_backend.RepeatedSteps` does."""

    def backward(self, grad: Tensor) -> Tensor:
        """The gradient of ``start`` for that of the result, both [R, N, padded C]."""
        ...


@dataclass(eq=False)
class NoSteps:
    """Where nothing moves along edges."""

    start: Tensor

    def forward(self) -> Tensor:
        """See :class:`Steps`."""
        return self.start

    def backward(self, grad: Tensor) -> Tensor:
        """See :class:`Steps`."""
        return grad


def _places(rows: Tensor, width: int) -> Tensor:
    """The rows [R, T] as an index of all of their channels, [R, T, C]."""
    return rows.unsqueeze(2).expand(-1, -1, width)


def _are_classes(labels: Tensor, count: int) -> bool:
    """Whether compiled loops may take labels for places among ``count`` logits."""
    return labels.numel() > 0 and int(labels.min()) >= 0 and int(labels.max()) < count


def _names(form: TwoMaps) -> list[str]:
    return [f"{which}.{part}" for which in (form.first, form.last) for part in ("weight", "bias")]
