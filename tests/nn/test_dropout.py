from __future__ import annotations

import pytest
import torch

from plap.nn.linear import dropout


def test_keeps_the_mean_and_zeroes_the_share() -> None:
    torch.manual_seed(0)
    x = torch.full((200, 500), 3.0, requires_grad=True)
    result = dropout(x, 0.25, training=True)
    assert (result == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert set(result.detach().unique().tolist()) == {0.0, 4.0}
    result.sum().backward()
    assert torch.equal(x.grad, result.detach() / 3)  # type: ignore[arg-type]


def test_is_nothing_outside_training_or_without_a_share() -> None:
    x = torch.randn(4, 4)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x
    with pytest.raises(ValueError, match=r"dropout must be a number of at least 0 and below 1, not 1.0"):
        dropout(x, 1.0, training=True)
