from __future__ import annotations

import pytest
import torch

from plap import InputError
from plap.training import accuracy, accuracy_interval, macro_f1, micro_f1, roc_auc

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
