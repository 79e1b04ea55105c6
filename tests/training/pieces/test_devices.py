"""Nothing is tied to the CPU: models, pieces and losses work on a device that has no numbers at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import plap
import training_worker as worker
from plap.data.tasks import Multilabel
from plap.models import find_model
from plap.training import RunConfig, build_module
from plap.training.pieces.cutting import Piece
from plap.training.pieces.model_on_pieces import PieceLoss, logits_of

META = torch.device("meta")
PIECES = worker.pieces()


def piece() -> Piece:
    return PIECES.training_piece(next(PIECES.steps(0))[0]).to(META)


@pytest.mark.parametrize("model", ["pgnn", "mlp"])
def test_a_step_on_another_device(model: str) -> None:
    config = RunConfig(model)
    module = build_module(config, PIECES.x.shape[1], PIECES.task.num_outputs).to(META)
    there = piece()
    kind = find_model(model)
    logits = logits_of(kind, module, there, 2)
    assert logits.device == META
    assert logits.shape == (there.rows.shape[0], 2)
    loss = PieceLoss(kind, module, PIECES.task)(there)
    loss.backward()
    assert all(value.grad is not None and value.grad.device == META for value in module.parameters())
    assert PIECES.task.tally(logits, there.labels).device == META


def test_several_labels_on_another_device() -> None:
    logits, labels = torch.empty(4, 3, device=META), torch.empty(4, 3, device=META)
    task = Multilabel.of_width(3)
    assert task.losses(logits, labels).device == task.tally(logits, labels).device == META


@pytest.mark.parametrize(
    "make",
    [
        lambda: plap.nn.PGNN(10, 8, 3, p=1.3),
        lambda: plap.nn.DeepPGNN(10, 8, 3, p=2.5, num_layers=2, residual=True, mlp_layers=1),
        lambda: plap.nn.PLaplacianConv(10, 3, p=1.7, learn_p=True, learn_mu=True),
    ],
    ids=["PGNN", "DeepPGNN", "learned p and mu"],
)
def test_modules_on_another_device(make: Callable[[], torch.nn.Module]) -> None:
    there = piece()
    module = make().to(META)
    out: Tensor = module(there.x, there.graph)
    out.sum().backward()
    assert out.device == META


def test_sparse_features_become_dense_on_their_way_to_a_gpu() -> None:
    here = PIECES.training_piece(next(PIECES.steps(0))[0])
    sparse = replace(here, x=here.x.to_dense().to_sparse_csr())
    assert sparse.to("cpu") is sparse
    assert sparse.to(META).x.layout == torch.strided
