from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

import plap
from plap.errors import InputError
from plap.nn import LabelReuse

POISON = 10**6


@given(st.integers(2, 40), st.floats(0.01, 0.99), st.integers(0, 1000))
def test_each_training_label_is_shown_or_predicted_and_never_both(n: int, share: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=generator)
    train = torch.rand(n, generator=generator) < 0.7
    train[:2] = True
    columns, predicted = LabelReuse(y, train, 3, share).draw(generator)
    shown = columns.sum(1) > 0
    assert bool(predicted.any())
    assert bool(shown.any())
    assert torch.equal(shown | predicted, train)
    assert not bool((shown & predicted).any())
    assert torch.equal(columns[shown].argmax(1), y[shown])
    assert torch.equal(columns[~shown], torch.zeros_like(columns[~shown]))


def test_the_input_does_not_depend_on_what_is_to_be_predicted() -> None:
    y, train = torch.arange(20) % 4, torch.arange(20) < 15
    columns, predicted = LabelReuse(y, train, 4).draw(torch.Generator().manual_seed(3))
    other = torch.where(predicted, (y + 1) % 4, y)
    again, same = LabelReuse(other, train, 4).draw(torch.Generator().manual_seed(3))
    assert torch.equal(predicted, same)
    assert torch.equal(columns, again)


def test_labels_outside_the_training_set_are_never_read() -> None:
    y, train = torch.arange(20) % 4, torch.arange(20) < 15
    poisoned = torch.where(train, y, POISON)
    for labels in (y, poisoned):
        reuse = LabelReuse(labels, train, 4)
        assert torch.equal(reuse.everything()[~train], torch.zeros(5, 4))
        assert torch.equal(reuse.everything()[train].argmax(1), y[train])


def test_unknown_training_labels_are_neither_shown_nor_predicted() -> None:
    y = torch.tensor([0, -1, 1, -1, 1])
    columns, predicted = LabelReuse(y, torch.ones(5, dtype=torch.bool), 2).draw()
    unknown = y < 0
    assert not bool(predicted[unknown].any())
    assert not bool(columns[unknown].any())


def test_steps_differ_and_are_repeatable() -> None:
    reuse = LabelReuse(torch.arange(50) % 2, torch.ones(50, dtype=torch.bool), 2)
    generator = torch.Generator().manual_seed(0)
    first, second = reuse.draw(generator), reuse.draw(generator)
    again = reuse.draw(torch.Generator().manual_seed(0))
    assert not torch.equal(first.predicted, second.predicted)
    assert torch.equal(first.predicted, again.predicted)


def test_shown_labels_help_where_features_say_nothing() -> None:
    data = plap.data.csbm(phi=0.9, n=400, f=8, d=10.0, seed=1)
    split = plap.data.split(data, seed=0)
    noise = torch.randn(400, 4, generator=torch.Generator().manual_seed(0))
    reuse = LabelReuse(data.y, split.train, 2)
    torch.manual_seed(0)
    model = plap.nn.PGNN(6, 8, 2, p=2.0, mu=0.1, K=2, dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        columns, predicted = reuse.draw(generator)
        optimizer.zero_grad()
        logits = model(torch.cat([noise, columns], 1), data.graph)
        cross_entropy(logits[predicted], data.y[predicted]).backward()
        optimizer.step()
    right = model.eval()(torch.cat([noise, reuse.everything()], 1), data.graph).argmax(1) == data.y
    assert right[split.test].float().mean() > 0.75


def test_refuses() -> None:
    y, train = torch.tensor([0, 1, 2]), torch.ones(3, dtype=torch.bool)
    with pytest.raises(InputError, match="one class per node"):
        LabelReuse(torch.rand(3, 2), train, 3)
    with pytest.raises(InputError, match="train must be a boolean tensor of shape"):
        LabelReuse(y, torch.tensor([0, 1]), 3)
    with pytest.raises(InputError, match="the class 2, but num_classes is 2"):
        LabelReuse(y, train, 2)
    with pytest.raises(InputError, match="share must be a number above 0 and below 1"):
        LabelReuse(y, train, 3, share=1.0)
    with pytest.raises(InputError, match="two training labels"):
        LabelReuse(torch.tensor([0, -1, -1]), train, 3)
