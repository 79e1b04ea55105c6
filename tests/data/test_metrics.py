from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics
import torch

from plap import InputError
from plap.data import weighted_metrics as weighted
from plap.data.labels import rarer_class
from plap.data.metrics import (
    METRICS,
    accuracy,
    accuracy_interval,
    average_precision,
    balanced_accuracy,
    confidence_interval,
    differ,
    find_metric,
    log_loss,
    macro_f1,
    micro_f1,
    roc_auc,
)
from plap.data.tasks import TASKS

LABELS = torch.tensor([0, 0, 0, 1, 1, 2])
PREDICTIONS = torch.tensor([0, 0, 1, 1, 1, 0])


def test_known_values() -> None:
    assert accuracy(LABELS, PREDICTIONS) == pytest.approx(4 / 6)
    assert micro_f1(LABELS, PREDICTIONS) == pytest.approx(4 / 6)
    assert macro_f1(LABELS, PREDICTIONS) == pytest.approx((2 / 3 + 4 / 5 + 0) / 3)
    assert roc_auc(torch.tensor([0, 1, 1]), torch.tensor([0.5, 0.2, 0.9])) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("correct", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (45, 50, 0.7864, 0.9565)],
)
def test_wilsons_interval(correct: int, total: int, low: float, high: float) -> None:
    assert accuracy_interval(correct, total) == pytest.approx((low, high), abs=1e-4)


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(InputError, match="must match"):
        accuracy(LABELS, PREDICTIONS[:3])
    with pytest.raises(InputError, match="NaN"):
        roc_auc(torch.tensor([0, 1]), torch.tensor([0.1, float("nan")]))
    with pytest.raises(InputError, match="exactly two classes"):
        roc_auc(LABELS, PREDICTIONS.float())
    with pytest.raises(InputError, match="between 0 and total"):
        accuracy_interval(3, 2)


def test_wilsons_formula_written_out() -> None:
    z = 1.959963984540054
    for total in (1, 7, 50, 1234):
        for correct in {0, 1, total // 3, total - 1, total}:
            share = correct / total
            centre = (share + z**2 / (2 * total)) / (1 + z**2 / total)
            half = z / (1 + z**2 / total) * (share * (1 - share) / total + z**2 / (4 * total**2)) ** 0.5
            expected = (max(0.0, centre - half), min(1.0, centre + half))
            assert accuracy_interval(correct, total) == pytest.approx(expected, abs=1e-12)


def test_probabilities_of_both_classes_are_scores_too() -> None:
    second = torch.tensor([0.5, 0.2, 0.9])
    both = torch.stack([1 - second, second], 1)
    assert roc_auc(torch.tensor([0, 1, 1]), both) == roc_auc(torch.tensor([0, 1, 1]), second)


def test_the_registry_calls_its_rows_by_their_names() -> None:
    assert list(METRICS) == [metric.name for metric in METRICS.values()]
    assert {task for metric in METRICS.values() for task in metric.tasks} == set(TASKS)
    assert all(TASKS[name].headline in METRICS for name in TASKS)


def sample(nodes: int = 300, classes: int = 3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels, and probabilities of which many are equal."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=nodes)
    scores = rng.integers(1, 8, (nodes, classes)) + 2 * np.eye(classes)[labels]
    return torch.from_numpy(labels), torch.from_numpy(scores / scores.sum(1, keepdims=True))


def form(name: str) -> weighted.WeightedMetric:
    found = METRICS[name].weighted
    assert found is not None
    return found


def test_multiclass_rankings_are_scikit_learns() -> None:
    labels, p = sample()
    assert roc_auc(labels, p) == pytest.approx(sklearn.metrics.roc_auc_score(labels, p, multi_class="ovr"))
    one_hot = np.eye(3)[labels]
    assert average_precision(labels, p) == pytest.approx(sklearn.metrics.average_precision_score(one_hot, p))
    assert log_loss(labels, p) == pytest.approx(sklearn.metrics.log_loss(labels, p))
    said = p.argmax(1)
    assert balanced_accuracy(labels, said) == pytest.approx(
        sklearn.metrics.balanced_accuracy_score(labels, said)
    )


def test_average_precision_of_two_classes_is_of_the_rarer() -> None:
    labels, p = sample(classes=2)
    labels[:200] = 1
    expected = sklearn.metrics.average_precision_score(labels == 0, p[:, 0])
    assert average_precision(labels, p) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_weighted_metrics_are_scikit_learns(classes: int) -> None:
    labels, p = sample(classes=classes)
    weights = torch.from_numpy(np.random.default_rng(1).integers(1, 4, (2, 300))).double()
    said = p.argmax(1)
    for k in range(2):
        w, this = weights[k].numpy(), weights[k : k + 1]
        pairs = {
            "accuracy": sklearn.metrics.accuracy_score(labels, said, sample_weight=w),
            "balanced_accuracy": sklearn.metrics.balanced_accuracy_score(labels, said, sample_weight=w),
            "macro_f1": sklearn.metrics.f1_score(labels, said, average="macro", sample_weight=w),
            "log_loss": sklearn.metrics.log_loss(labels, p, sample_weight=w),
        }
        for name, expected in pairs.items():
            outputs = p if METRICS[name].takes == "probabilities" else said
            assert float(form(name)(labels[None], outputs[None], this)) == pytest.approx(expected)
        for name, function in (
            ("roc_auc", sklearn.metrics.roc_auc_score),
            ("average_precision", sklearn.metrics.average_precision_score),
        ):
            columns = range(3) if classes == 3 else [rarer_class(labels)]
            each = [function(labels == c, p[:, c], sample_weight=w) for c in columns]
            found = float(form(name)(labels[None], p[None], this))
            assert found == pytest.approx(np.mean(each))


def test_weights_of_whole_numbers_are_repetitions() -> None:
    labels, p = sample(classes=2)
    counts = torch.from_numpy(np.random.default_rng(2).integers(0, 3, 300))
    again = torch.repeat_interleave(torch.arange(300), counts)
    for name in ("roc_auc", "average_precision", "balanced_accuracy", "macro_f1", "log_loss"):
        metric = METRICS[name]
        outputs = p.argmax(1) if metric.takes == "predictions" else p[:, 1] if metric.of_positive_class else p
        found = form(name)(labels[None], outputs[None], counts[None].double())
        assert float(found) == pytest.approx(metric.function(labels[again], outputs[again]))


def test_a_ranking_without_positives_has_no_value() -> None:
    labels = torch.zeros(1, 5, dtype=torch.int64)
    scores = torch.rand(1, 5)
    assert weighted.roc_auc(labels, scores, torch.ones(1, 5)).isnan().all()
    assert weighted.average_precision(labels, scores, torch.ones(1, 5)).isnan().all()


def test_a_bootstrap_interval_is_about_that_of_the_binomial() -> None:
    rng = np.random.default_rng(3)
    labels = torch.from_numpy(rng.integers(2, size=2000))
    said = torch.where(torch.from_numpy(rng.random(2000) < 0.8), labels, 1 - labels)
    found = confidence_interval(METRICS["balanced_accuracy"], labels, said)
    assert found is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * (0.16 / 2000) ** 0.5, rel=0.15)
    many = torch.arange(100_000) % 2
    right = torch.from_numpy(rng.random(100_000) < 0.8)
    found = confidence_interval(METRICS["balanced_accuracy"], many, torch.where(right, many, 1 - many))
    assert found is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * (0.16 / 100_000) ** 0.5, rel=0.15)
    assert found == confidence_interval(
        METRICS["balanced_accuracy"], many, torch.where(right, many, 1 - many)
    )


def test_a_paired_bootstrap_sees_a_small_but_steady_gain() -> None:
    rng = np.random.default_rng(4)
    labels = torch.from_numpy((rng.random(3000) < 0.1).astype(np.int64))
    noise = torch.from_numpy(rng.standard_normal(3000))
    worse, better = labels + noise, 1.3 * labels + noise
    metric = METRICS["average_precision"]
    assert differ(metric, labels, better, worse) is True
    assert differ(metric, labels, worse, worse + 1e-3 * torch.from_numpy(rng.standard_normal(3000))) is False


def test_metrics_are_asked_for_by_name_and_task() -> None:
    assert find_metric("mae", "regression").higher_is_better is False
    with pytest.raises(InputError, match=r"metric 'r2' is not one of those for multiclass data: accuracy"):
        find_metric("r2", "multiclass")
    with pytest.raises(InputError, match="did you mean 'macro_f1'"):
        find_metric("makro_f1", "multiclass")


@pytest.mark.parametrize("name", ["average_precision", "roc_auc", "balanced_accuracy", "macro_f1"])
def test_a_rare_class_of_a_few_nodes_decides_nothing(name: str) -> None:
    metric = METRICS[name]
    draws = torch.Generator().manual_seed(0)
    for count, told in ((1, False), (9, False), (10, True)):
        labels = (torch.arange(200) < count).long()
        if metric.takes == "probabilities":
            first, second = torch.rand(2, 200, generator=draws, dtype=torch.float64)
        else:
            first, second = torch.randint(2, (2, 200), generator=draws)
        assert metric.too_few(labels) is not told
        assert (confidence_interval(metric, labels, first) is not None) is told
        assert (differ(metric, labels, first, second) is not None) is told
    assert not METRICS["accuracy"].too_few(torch.tensor([0, 1]))
    assert not metric.too_few(torch.tensor([0, 1, 2]))
