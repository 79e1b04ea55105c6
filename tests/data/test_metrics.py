from __future__ import annotations

import pytest
import torch

from plap import InputError
from plap.data.metrics import METRICS, accuracy, accuracy_interval, macro_f1, micro_f1, roc_auc
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
