"""The metric that the data choose, temperatures, thresholds, prediction sets; all from validation labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics
import torch

import plap
from plap.data.splits import split
from plap.data.tasks import Multiclass, Regression
from plap.errors import InputError
from plap.fitting import FitSettings, fit
from plap.fitting.artifacts import load_metrics, load_model
from plap.fitting.decisions import best_threshold, choose_task, settle
from plap.fitting.prediction import agreement, predict_nodes
from rare_graph import number_graph, rare_graph

QUICK = FitSettings(fixed={"p": 2.0}, search=False, seeds=2, hidden=8, max_epochs=60)


def calibrated_sample(nodes: int, sharpness: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels drawn from probabilities, and these probabilities made sharper than they are."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(nodes, 3, generator=generator)
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    return labels, (sharpness * logits).softmax(1)


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_a_temperature_undoes_overconfidence(sharpness: float) -> None:
    y, said = calibrated_sample(4000, sharpness)
    task, after = settle(Multiclass.of_width(3), said, y, torch.ones(4000, dtype=torch.bool))
    assert isinstance(task, Multiclass)
    assert task.temperature == pytest.approx(sharpness, rel=0.15)
    torch.testing.assert_close(after, task.calibrated(said))
    assert torch.equal(after.argmax(1), said.argmax(1))
    assert sklearn.metrics.log_loss(y, after) <= sklearn.metrics.log_loss(y, said) + 1e-6


def test_weights_of_classes_leave_honest_probabilities_and_the_predictions() -> None:
    generator = torch.Generator().manual_seed(2)
    odds = torch.randn(8000, generator=generator) - 3
    y = (torch.rand(8000, generator=generator) < odds.sigmoid()).long()
    task = Multiclass(("0", "1")).learned(y, "balanced")
    assert task.class_weights is not None
    raised = (odds + np.log(task.class_weights[1] / task.class_weights[0])).sigmoid()
    said = torch.stack([1 - raised, raised], 1)
    settled, after = settle(task, said, y, torch.ones(8000, dtype=torch.bool))
    assert float(after[:, 1].mean()) == pytest.approx(float(y.double().mean()), rel=0.1)
    assert torch.equal(settled.decode(after), said.argmax(1))
    other, same = settle(task, said, y, torch.ones(8000, dtype=torch.bool), weighted=False)
    assert isinstance(other, Multiclass)
    assert other.prior_shift == 0
    assert torch.equal(same.argmax(1), said.argmax(1))


def test_nodes_that_are_all_right_do_not_make_the_model_certain() -> None:
    y = torch.tensor([0, 1] * 15)
    said = torch.where(torch.nn.functional.one_hot(y, 2) == 1, 0.8, 0.2)
    task, after = settle(Multiclass.of_width(2), said, y, torch.ones(30, dtype=torch.bool))
    assert isinstance(task, Multiclass)
    assert task.temperature > 0.2
    assert float(after.max()) < 1


@pytest.mark.parametrize("goal", ["f1", "balanced"])
def test_the_threshold_is_the_best_there_is(goal: str) -> None:
    rng = np.random.default_rng(1)
    positive = rng.random(300) < 0.2
    score = np.round(np.clip(0.3 * positive + rng.normal(0.3, 0.2, 300), 0, 1), 2)
    found = best_threshold(positive, score, goal)
    assert found is not None
    measure = sklearn.metrics.f1_score if goal == "f1" else sklearn.metrics.balanced_accuracy_score
    best = max(measure(positive, score >= cut) for cut in np.unique(score))
    assert measure(positive, score >= found) == pytest.approx(best)
    assert best_threshold(positive, np.full(300, 0.1), goal) is None
    assert best_threshold(positive & (np.cumsum(positive) <= 2), score, goal) is None


def test_sets_and_intervals_have_their_coverage() -> None:
    y, said = calibrated_sample(6000, 2.0)
    val = torch.arange(6000) < 3000
    task, after = settle(Multiclass.of_width(3), said, y, val, coverage=0.8)
    assert isinstance(task, Multiclass)
    sets = task.sets(after)
    assert sets is not None
    assert float(sets[~val].gather(1, y[~val][:, None]).double().mean()) == pytest.approx(0.8, abs=0.03)
    assert bool(sets.any(1).all())
    numbers = torch.randn(6000, generator=torch.Generator().manual_seed(1)).double()
    regression, _ = settle(Regression().learned(numbers), torch.zeros(6000, 1), numbers, val)
    assert isinstance(regression, Regression)
    ends = regression.intervals(torch.zeros(6000, 1))
    assert ends is not None
    inside = (numbers >= ends[0]) & (numbers <= ends[1])
    assert float(inside[~val].double().mean()) == pytest.approx(0.9, abs=0.02)


def test_the_data_choose_the_metric_unless_the_user_does() -> None:
    data = rare_graph()
    parts = split(data)
    task, notes = choose_task(data, parts, FitSettings())
    assert task.metric.name == "average_precision"
    assert "so average precision decides; --metric accuracy changes that" in notes[0]
    assert "--class-weight none changes that" in notes[1]
    assert isinstance(task, Multiclass)
    assert task.class_weights is not None
    plain, notes = choose_task(data, parts, FitSettings(class_weight=None))
    assert isinstance(plain, Multiclass)
    assert plain.class_weights is None
    assert len(notes) == 1
    task, notes = choose_task(data, parts, FitSettings(metric="accuracy"))
    assert (task.metric.name, notes) == ("accuracy", ())
    with pytest.raises(InputError, match="metric 'r2' is not one of those for multiclass data"):
        choose_task(data, parts, FitSettings(metric="r2"))
    with pytest.raises(InputError, match="coverage between 0 and 1"):
        FitSettings(conformal=90)


def test_several_labels_have_no_prediction_sets() -> None:
    data = plap.data.csbm(phi=0.5, n=60, f=5, seed=0)
    several = replace(data, y=torch.stack([data.y, 1 - data.y], 1).float(), class_names=("a", "b"))
    with pytest.raises(InputError, match=r"conformal gives sets of classes .* may have several labels"):
        fit(several, settings=replace(QUICK, conformal=0.9))


def test_a_fit_of_a_rare_class(tmp_path: Path) -> None:
    data = rare_graph()
    result = fit(data, settings=replace(QUICK, class_weight="balanced", conformal=0.9))
    metrics = result.metrics
    assert metrics["metric"] == "average_precision"
    assert next(iter(metrics["methods"][0]["scores"])) == "average_precision"
    names = [method["name"] for method in metrics["methods"]]
    assert names == ["pGNN", "MLP", "gradient boosting", "label propagation", "majority class"]
    common = metrics["methods"][-1]["scores"]
    assert common["average_precision"] == pytest.approx(float(data.y[result.split.test].double().mean()))
    assert common["accuracy"] > 0.9
    assert "average precision" in result.content.finding
    assert "accuracy" not in result.content.finding
    out = result.save(tmp_path / "out")
    model = load_model(out)
    assert model.task == result.task
    assert isinstance(model.task, Multiclass)
    assert model.task.threshold is not None
    again = predict_nodes(model, data)
    np.testing.assert_allclose(again.probabilities, result.predictions.probabilities, atol=1e-5)
    assert again.predicted == result.predictions.predicted
    frame = again.frame()
    assert set(frame["set"]) <= {"fair", "fraud", "fair; fraud"}
    found = frame["predicted"] == "fraud"
    assert (found == (frame["probability_fraud"] >= model.task.threshold)).all()
    assert set(agreement(again, data)) == {"known", "right", "average_precision"}
    assert load_metrics(out)["decision"]["threshold"] == pytest.approx(model.task.threshold)


def test_a_fit_of_numbers(tmp_path: Path) -> None:
    data = number_graph()
    result = fit(data, settings=QUICK)
    names = [method.name for method in result.methods]
    assert names == ["pGNN", "MLP", "gradient boosting", "label propagation", "mean"]
    assert list(result.model.scores) == ["r2", "mae", "rmse"]
    assert result.model.scores["r2"] > 0.4
    assert result.methods[3].scores["r2"] > 0.3
    assert abs(result.methods[4].scores["r2"]) < 0.1
    assert result.metrics["metric"] == "r2"
    assert "R² of 0." in result.content.finding
    out = result.save(tmp_path / "out")
    frame = predict_nodes(load_model(out), data).frame()
    assert frame.columns == ["node", "role", "known", "predicted", "lower", "upper"]
    assert frame["known"].null_count() == 20
    saved = result.predictions.frame()
    np.testing.assert_allclose(frame["predicted"], saved["predicted"], rtol=1e-4)
    test = saved.filter(saved["role"] == "test")
    known, lower, upper = (test[name].to_numpy() for name in ("known", "lower", "upper"))
    inside = (known >= lower) & (known <= upper)
    assert inside.mean() > 0.75
    assert set(agreement(result.predictions, data)) == {"known", "r2", "seen"}


def test_a_metric_for_which_lower_is_better() -> None:
    result = fit(number_graph(), settings=replace(QUICK, metric="mae", rivals=("majority",)))
    model, mean = result.methods
    assert model.scores["mae"] < mean.scores["mae"]
    assert "It is significantly better than mean" in result.content.finding
    assert min(result.content.runs[0].val_score) > 0


def test_one_answer_for_all_is_said_first() -> None:
    data = rare_graph(200)
    same = replace(data, x=torch.zeros_like(data.x))
    result = fit(same, settings=replace(QUICK, metric="accuracy", rivals=(), max_epochs=3))
    assert result.content.finding.startswith("Every node is predicted to be 'fair': the model tells no nodes")


def test_a_better_rival_is_named() -> None:
    data = number_graph()
    useless = replace(data, x=torch.rand_like(data.x))
    result = fit(useless, settings=replace(QUICK, fixed={"p": 2.0, "K": 1, "mu": 100.0}, rivals=("labels",)))
    assert result.content.finding.endswith("On this data, label propagation is the better choice.")


def test_many_features_leave_boosting_out() -> None:
    data = rare_graph(120, share=0.4)
    wide = replace(data, x=torch.rand(120, 501))
    result = fit(wide, settings=replace(QUICK, max_epochs=2, rivals=("boosting",)))
    assert len(result.methods) == 1
    assert "Gradient boosting was left out: there are 501 features, more than 500." in result.notes


def test_no_verdict_rests_on_a_few_nodes_of_a_class() -> None:
    data = plap.data.csbm(phi=0.0, n=200, f=10, seed=1)
    labels = torch.zeros(200, dtype=torch.int64)
    labels[torch.randperm(200, generator=torch.Generator().manual_seed(1))[:8]] = 1
    rare = replace(data, y=labels, class_names=("fair", "fraud"))
    result = plap.fit(rare, search=False, seeds=1, max_epochs=5, rivals=("mlp", "majority"))
    assert result.task.metric.name == "average_precision"
    held = int(labels[result.split.test].sum())
    said = result.content.finding
    assert f"Only {held} of these nodes {'is' if held == 1 else 'are'} 'fraud': too few" in said
    assert "significantly" not in said
    assert "confidence interval:" not in said
