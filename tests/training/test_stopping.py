from __future__ import annotations

import numpy as np
import pytest

import tiny_training as tiny
from plap.experiments.runs import Run, Setting
from plap.fitting import FitSettings
from plap.training import RunConfig, train_runs
from plap.training.stopping import EarlyStopping

CHANCE = 0.25
"""A score that does not move while the loss falls: the majority class."""


def ends(stopping: str, losses: list[float], scores: list[float]) -> tuple[int, int]:
    """Best epoch, and the epoch in which the run ends."""
    rule = EarlyStopping([RunConfig(patience=3, max_epochs=9, stopping=stopping)])
    for loss, score in zip(losses, scores, strict=True):
        rule.note(np.array([loss]), np.array([score]))
        if rule.over[0]:
            break
    return int(rule.best_epoch[0]), rule.epoch


FALLING = [1.0, 1.5, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
LATE = [0.3, CHANCE, CHANCE, CHANCE, CHANCE, CHANCE, CHANCE, 0.9, 0.9]


@pytest.mark.parametrize(
    ("stopping", "expected"), [("best", (1, 4)), ("progress", (9, 9)), ("published", (8, 9))]
)
def test_a_run_that_still_learns(stopping: str, expected: tuple[int, int]) -> None:
    """The first epoch is best by luck; the loss falls from the third on and the score rises at last."""
    assert ends(stopping, FALLING, LATE) == expected


def test_progress_ends_when_neither_improves() -> None:
    assert ends("progress", [1.0, 0.9, 0.95, 0.95, 0.95, 0.95, 0.95, 0.1, 0.1], [0.5] * 9) == (2, 5)


def test_published_keeps_the_first_of_equal_epochs() -> None:
    assert ends("published", FALLING, [0.5] * 9) == (1, 9)
    assert ends("best", FALLING, [0.5] * 9) == (9, 9)


def test_each_run_has_its_own_rule() -> None:
    configs = [RunConfig(patience=3, max_epochs=9, stopping=s) for s in ("best", "progress", "published")]
    rule = EarlyStopping(configs)
    for loss, score in zip(FALLING[:4], LATE, strict=False):
        rule.note(np.full(3, loss), np.full(3, score))
    assert rule.over.tolist() == [True, False, False]
    rule.keep(np.array([1, 2]))
    for loss, score in zip(FALLING[4:], LATE[4:], strict=True):
        rule.note(np.full(2, loss), np.full(2, score))
    assert rule.best_epoch.tolist() == [9, 8]


def test_training_without_early_stopping_uses_all_epochs() -> None:
    data = tiny.data()
    runs = [RunConfig(lr=0.05, max_epochs=40, patience=2, stopping=s) for s in ("best", "published")]
    results = train_runs(data.graph, data.x, data.y, runs, tiny.masks(data.y))
    assert results[0].epochs < results[1].epochs == 40


def test_tables_keep_their_rule_and_their_keys() -> None:
    assert RunConfig().stopping == "best"
    assert FitSettings().config("pgnn").stopping == "progress"
    key = Run(Setting("sound", "texas", "dense"), "pgnn-1.5", RunConfig(p=1.5, seed=3)).key
    assert key == "0a67236ac04531c5d489335bbffd34444c0a9662f565fe2671d9b67e6882b8f9"
