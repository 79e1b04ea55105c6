"""Members that each divide training and validation nodes anew: when, on what, and how they are judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import plap
from plap.data import FixedSplits, GraphData, Split, csbm, split
from plap.data.splits import bagged
from plap.data.tasks import Multiclass
from plap.fitting import FitSettings, fit
from plap.fitting.artifacts import load_metrics
from plap.fitting.comparison import RIVALS
from plap.fitting.decisions import settle
from plap.split_masks import HoldOut
from plap.training import RunConfig, train_ensemble, train_runs
from plap.training.ensemble import held_out
from plap.training.tuning import tune
from rare_graph import number_graph

QUICK = FitSettings(search=False, seeds=4, max_epochs=15, fixed={"p": 2.0}, rivals=())
CONFIG = RunConfig(p=2.0, max_epochs=12)


@pytest.fixture(scope="module")
def data() -> GraphData:
    return csbm(phi=-0.8, n=240, f=20, d=8.0, seed=3)


@pytest.fixture(scope="module")
def parts(data: GraphData) -> Split:
    return split(data, seed=1)


def test_each_member_is_a_run_on_its_own_division(data: GraphData, parts: Split) -> None:
    bags = bagged(parts, data.y)
    ensemble = train_ensemble(data.graph, data.x, data.y, bags, CONFIG, 3)
    for seed, run in enumerate(ensemble.runs):
        config = CONFIG.with_values(seed=seed)
        (alone,) = train_runs(data.graph, data.x, data.y, [config], bags.of(seed))
        torch.testing.assert_close(run.logits, alone.logits, rtol=1e-4, atol=1e-5)
    first = train_ensemble(data.graph, data.x, data.y, parts, CONFIG, 3).runs
    assert first[0].logits.equal(ensemble.runs[0].logits)
    assert not first[1].logits.equal(ensemble.runs[1].logits)


def test_the_seeds_of_the_last_rung_are_members_that_need_no_training(data: GraphData, parts: Split) -> None:
    bags = bagged(parts, data.y)
    found = tune(data.graph, data.x, data.y, bags, budget=400)
    assert {run.config.seed for run in found.finalists} == {0, 1}
    ensemble = train_ensemble(data.graph, data.x, data.y, bags, found.best, 2, known=found.finalists)
    assert all(any(run is other for other in found.finalists) for run in ensemble.runs)
    for run in found.finalists:
        (alone,) = train_runs(data.graph, data.x, data.y, [run.config], bags.of(run.config.seed))
        assert alone.val_score == pytest.approx(run.val_score, abs=0.03)
        assert alone.best_epoch > 0


def test_honest_probabilities_are_those_of_members_that_did_not_see_a_node(
    data: GraphData, parts: Split
) -> None:
    bags = bagged(parts, data.y)
    ensemble = train_ensemble(data.graph, data.x, data.y, bags, CONFIG, 4)
    honest, nodes = held_out(ensemble, bags)
    assert nodes.equal(parts.train | parts.val)  # 60/20: four members hold each of them out once
    for seed, run in enumerate(ensemble.runs):
        unseen = bags.of(seed).val
        torch.testing.assert_close(honest[unseen], run.logits.softmax(1)[unseen])
    torch.testing.assert_close(honest[parts.test], ensemble.probabilities[parts.test])
    plain, val = held_out(ensemble, parts)
    assert plain is ensemble.probabilities
    assert val is parts.val


def test_a_temperature_is_learned_from_honest_probabilities() -> None:
    labels = torch.arange(400) % 2
    sure = torch.eye(2)[labels] * 0.98 + 0.01
    honest = torch.where(torch.arange(400)[:, None] % 4 == 0, 1 - sure, sure)
    every = torch.ones(400, dtype=torch.bool)
    naive, _ = settle(Multiclass.of_width(2), sure, labels, every)
    task, after = settle(Multiclass.of_width(2), sure, labels, every, judged_by=honest)
    assert isinstance(naive, Multiclass)
    assert isinstance(task, Multiclass)
    assert naive.temperature < 1 < task.temperature
    assert float(after.max()) == pytest.approx(0.75, abs=0.02)


def test_random_splits_are_bagged_and_the_page_says_so(data: GraphData, parts: Split, tmp_path: Path) -> None:
    found = fit(data, parts, settings=QUICK)
    assert found.bags is not None
    assert any("--no-bagging" in note and "from 192 labels instead of 144" in note for note in found.notes)
    assert found.learned_from.equal(parts.train | parts.val)
    found.save(tmp_path / "out")
    assert load_metrics(tmp_path / "out")["split"]["bagged"] is True
    off = fit(data, parts, settings=replace(QUICK, bagging=False))
    assert off.bags is None
    assert off.learned_from.equal(parts.train)
    assert not any("--no-bagging" in note for note in off.notes)


def test_a_single_member_has_one_division_and_so_have_its_rivals(data: GraphData, parts: Split) -> None:
    settings = replace(QUICK, seeds=1, rivals=("labels", "majority"))
    found, plain = (fit(data, parts, settings=replace(settings, bagging=flag)) for flag in (True, False))
    assert found.bags is None
    assert found.learned_from.equal(parts.train)
    assert not any("--no-bagging" in note for note in found.notes)
    for method, other in zip(found.methods, plain.methods, strict=True):
        assert method.probabilities.equal(other.probabilities)


def test_what_time_left_of_an_ensemble_says_what_was_learned(data: GraphData, parts: Split) -> None:
    found = fit(data, parts, settings=replace(QUICK, search=True, time_limit=0.2, rivals=("labels",)))
    seeds = {run.config.seed for run in found.fitted.members}
    assert (found.bags is None) == (seeds == {0})
    learned = torch.stack([bagged(parts, data.y).of(seed).train for seed in seeds]).any(0)
    assert found.learned_from.equal(learned)


def test_given_masks_are_kept_and_prediction_sets_too(data: GraphData, parts: Split) -> None:
    masks = FixedSplits(*(getattr(parts, name)[:, None] for name in ("train", "val", "test")))
    public = split(replace(data, splits=masks), "public")
    for each, settings in ((public, QUICK), (parts, replace(QUICK, conformal=0.9))):
        found = fit(data, each, settings=settings)
        assert found.bags is None
        plain = fit(data, each, settings=replace(settings, bagging=False))
        assert found.model.probabilities.equal(plain.model.probabilities)


@pytest.mark.parametrize("rival", ["boosting", "labels"])
def test_rivals_learn_from_the_same_labels(data: GraphData, parts: Split, rival: str) -> None:
    run, task = RIVALS[rival].run, data.task.learned(data.y[parts.train])
    said, honest = run(data, parts, task, True)
    same, also = run(data, parts, task, False)
    assert same is also
    assert honest.equal(same)
    assert not said.equal(honest)
    assert said.isfinite().all()
    flipped = replace(data, y=torch.where(parts.test, 1 - data.y, data.y))
    assert run(flipped, parts, task, True)[0].equal(said)


def test_label_propagation_is_not_ruined_by_more_labels() -> None:
    data = csbm(phi=0.5, n=2000, f=50, seed=1)
    few = split(data, rates=(0.05, 0.05, 0.9), seed=0)
    said, honest = RIVALS["labels"].run(data, few, data.task.learned(data.y[few.train]), True)
    right, before = (float((each.argmax(1) == data.y)[few.test].double().mean()) for each in (said, honest))
    assert right > before - 0.02
    assert right > 0.8


def test_bagging_must_be_true_or_false(data: GraphData) -> None:
    with pytest.raises(plap.InputError, match="bagging must be True or False, not 'no'"):
        FitSettings(bagging="no")  # type: ignore[arg-type]
    with pytest.raises(plap.InputError, match="bagging must be True or False"):
        plap.PGNNClassifier(bagging="no").fit(data.graph, data.x, data.y)  # type: ignore[arg-type]


def test_numbers_have_intervals_and_are_not_bagged() -> None:
    assert fit(number_graph(), settings=QUICK).bags is None


def test_an_estimator_bags_unless_it_is_given_the_sets(data: GraphData) -> None:
    y = data.y.clone()
    y[200:] = -1
    common: dict[str, Any] = {"p": 2.0, "tune": None, "seeds": 3, "max_epochs": 10}
    bagging = plap.PGNNClassifier(**common).fit(data.graph, data.x, y).predict_proba()
    plain = plap.PGNNClassifier(**common, bagging=False).fit(data.graph, data.x, y).predict_proba()
    assert not np.array_equal(bagging, plain)
    sets = plap.data.splits.hold_out(y, 0.25, 0)
    given = [
        plap.PGNNClassifier(**common, bagging=flag)
        .fit(data.graph, data.x, y, train=sets.train, val=sets.val)
        .predict_proba()
        for flag in (True, False)
    ]
    assert np.array_equal(given[0], given[1])
    assert np.array_equal(given[0], plain)


def test_bagging_pays_where_labels_are_few() -> None:
    data = csbm(phi=0.5, n=600, f=60, d=5.0, seed=5)
    gains = []
    for seed in range(3):
        few = split(data, rates=(0.05, 0.05, 0.9), seed=seed)
        scores = [
            fit(data, few, settings=replace(QUICK, seeds=8, max_epochs=60, bagging=flag)).model.scores
            for flag in (True, False)
        ]
        gains.append(scores[0]["accuracy"] - scores[1]["accuracy"])
    assert np.mean(gains) > 0.01


def test_a_class_without_validation_nodes_stays_in_training() -> None:
    y = torch.tensor([0, 0, 0, 1, 1, 1, 2])
    train = torch.tensor([True, True, False, True, True, False, True])
    val = torch.tensor([False, False, True, False, False, True, False])
    bags = bagged(HoldOut(train, val), y)
    assert all(bool(bags.of(seed).train[6]) for seed in range(8))
