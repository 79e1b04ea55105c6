"""Each task against plain formulas and scikit-learn; sums over pieces against the whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
import torch

from plap.data.tasks import TASKS, Multiclass, Multilabel, Regression, Task, training_task
from plap.errors import InputError
from tiny_training import Masks

NAN = math.nan


def single(nodes: int = 40, classes: int = 4) -> tuple[Task, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    y = torch.randint(classes, (nodes,), generator=generator)
    return Multiclass.of_width(classes), torch.randn(nodes, classes, generator=generator), y


def several(nodes: int = 40, labels: int = 4) -> tuple[Task, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    y = torch.randint(2, (nodes, labels), generator=generator).float()
    return Multilabel.of_width(labels), torch.randn(nodes, labels, generator=generator), y


BOTH = pytest.mark.parametrize("made", [single, several])


def test_cross_entropy_by_its_formula() -> None:
    task, logits, y = single()
    p = np.exp(logits.double().numpy())
    p /= p.sum(1, keepdims=True)
    expected = -np.log(p[np.arange(40), y.numpy()])
    np.testing.assert_allclose(task.losses(logits.double(), y), expected, rtol=1e-12)
    np.testing.assert_allclose(task.probabilities(logits.double()), p, rtol=1e-12)


def test_binary_cross_entropy_by_its_formula() -> None:
    task, logits, y = several()
    p = 1 / (1 + np.exp(-logits.double().numpy()))
    expected = -(y.numpy() * np.log(p) + (1 - y.numpy()) * np.log(1 - p)).mean(1)
    np.testing.assert_allclose(task.losses(logits.double(), y), expected, rtol=1e-12)
    np.testing.assert_allclose(task.probabilities(logits.double()), p, rtol=1e-12)


@BOTH
def test_a_stack_of_runs_is_each_run_alone(made: type) -> None:
    task, logits, y = made()
    stack, labels = torch.stack([logits, -logits]), torch.stack([y, y])
    for k, each in enumerate((logits, -logits)):
        torch.testing.assert_close(task.losses(stack, labels)[k], task.losses(each, y))
        for together, alone in zip(task.hits(stack, labels), task.hits(each, y), strict=True):
            assert torch.equal(together[k], alone)


@BOTH
def test_gradients_of_the_loss(made: type) -> None:
    task, logits, y = made(5, 3)
    assert torch.autograd.gradcheck(lambda z: task.losses(z, y), logits.double().requires_grad_())
    stack = torch.stack([logits, 2 * logits]).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: task.losses(z, torch.stack([y, y])), stack)


@BOTH
def test_the_score_in_training_is_scikit_learns(made: type) -> None:
    task, logits, y = made()
    score = float(task.score(*(part.sum() for part in task.hits(logits, y))))
    if task.one_class_per_node:
        expected = sklearn.metrics.accuracy_score(y, logits.argmax(1))
    else:
        expected = sklearn.metrics.f1_score(y, logits > 0, average="micro")
    assert score == pytest.approx(expected, abs=1e-12)
    assert task.metric.function(y, task.predict(logits)) == pytest.approx(expected, abs=1e-12)


@BOTH
def test_sums_over_pieces_are_those_of_the_whole(made: type) -> None:
    task, logits, y = made()
    cuts = (slice(0, 1), slice(1, 17), slice(17, 40))
    pieces = torch.stack([task.tally(logits[cut], y[cut]) for cut in cuts]).sum(0)
    torch.testing.assert_close(pieces, task.tally(logits, y), rtol=1e-12, atol=0)
    loss, score = task.mean_loss_and_score(pieces)
    assert loss == pytest.approx(float(task.losses(logits, y).double().mean()), rel=1e-12)
    assert score == task.metric.function(y, task.predict(logits))


def test_nothing_to_find_and_nothing_found_is_right() -> None:
    task = Multilabel.of_width(3)
    sums = task.tally(torch.full((2, 3), -1.0), torch.zeros(2, 3))
    assert task.mean_loss_and_score(sums)[1] == 1.0


def test_scores_of_one_class_per_node() -> None:
    task, logits, y = single()
    probabilities = task.probabilities(logits)
    scores = task.scores(y, probabilities)
    said = probabilities.argmax(1)
    assert list(scores) == [
        "accuracy", "balanced_accuracy", "macro_f1", "roc_auc", "average_precision", "log_loss"
    ]  # fmt: skip
    assert next(iter(task.with_metric("macro_f1").scores(y, probabilities))) == "macro_f1"
    assert scores["accuracy"] == sklearn.metrics.accuracy_score(y, said)
    assert scores["macro_f1"] == sklearn.metrics.f1_score(y, said, average="macro")
    interval = task.interval(y, probabilities)
    assert interval is not None
    assert interval.low < scores["accuracy"] < interval.high


def test_roc_auc_needs_two_classes_and_both_among_the_labels() -> None:
    task, logits, y = single(classes=2)
    probabilities = task.probabilities(logits)
    assert task.scores(y, probabilities)["roc_auc"] == pytest.approx(
        sklearn.metrics.roc_auc_score(y, probabilities[:, 1])
    )
    assert "roc_auc" not in task.scores(torch.zeros_like(y), probabilities)


def test_scores_of_several_labels() -> None:
    task, logits, y = several()
    probabilities = task.probabilities(logits)
    expected = sklearn.metrics.f1_score(y, probabilities >= 0.5, average="micro")
    scores = task.scores(y, probabilities)
    assert list(scores) == ["micro_f1", "macro_f1", "roc_auc", "average_precision"]
    assert scores["micro_f1"] == pytest.approx(expected)
    assert scores["roc_auc"] == pytest.approx(sklearn.metrics.roc_auc_score(y, probabilities))
    interval = task.interval(y, probabilities)
    assert interval is not None
    assert interval.low < expected < interval.high


@pytest.mark.parametrize(
    ("y", "name", "names", "known"),
    [
        (torch.tensor([1, -1, 0]), "multiclass", ("0", "1"), [True, False, True]),
        (torch.tensor([-1, -1]), "multiclass", (), [False, False]),
        (torch.tensor([], dtype=torch.int64), "multiclass", (), []),
        (torch.tensor([[0.0, 1.0], [NAN, NAN]]), "multilabel", ("0", "1"), [True, False]),
        (torch.tensor([[0.0, NAN]]), "multilabel", ("0", "1"), [False]),
        (torch.tensor([0.5, NAN, 2.0]), "regression", (), [True, False, True]),
    ],
)
def test_the_task_of_labels(y: torch.Tensor, name: str, names: tuple[str, ...], known: list[bool]) -> None:
    task = Task.of(y)
    assert isinstance(task, TASKS[name])
    outputs = 1 if task.numeric else len(names)
    assert (task.name, task.class_names, task.num_outputs) == (name, names, outputs)
    assert task.known(y).tolist() == known
    assert (task.strata(y) >= 0).tolist() == known


def test_names_of_classes() -> None:
    y = torch.tensor([0, 2])
    assert Task.of(y, ("a", "b", "c", "d")).class_names == ("a", "b", "c", "d")
    assert Task.of(y, ("0", "1")).class_names == ("0", "1", "2")
    assert Task.of(torch.ones(2, 3), ("0", "1")).class_names == ("0", "1", "2")
    with pytest.raises(InputError, match="y has 3 classes, but there are 2 class names"):
        Task.of(y, ("a", "b"))
    with pytest.raises(InputError, match="y has 3 classes, but there are 4 class names"):
        Task.of(torch.ones(2, 3), ("a", "b", "c", "d"))


@pytest.mark.parametrize("y", [torch.tensor([[0, 1]]), torch.tensor([True]), torch.tensor(1), "ab"])
def test_labels_of_no_task(y: object) -> None:
    with pytest.raises(InputError, match="y must hold integer classes"):
        Task.of(y)  # type: ignore[arg-type]


def test_words_and_sizes() -> None:
    one, more = Multiclass(("a", 7)), Multilabel(("a", "b"))
    assert one.words(torch.tensor([1, -1, 0])) == ["7", None, "a"]
    assert one.class_sizes(torch.tensor([1, -1, 1])) == {"a": 0, "7": 2}
    y = torch.tensor([[1.0, 1.0], [0.0, 0.0], [NAN, NAN]])
    assert more.words(y) == ["a; b", "", None]
    assert more.class_sizes(y) == {"a": 1, "b": 1}


def test_labels_of_another_graph_are_matched_by_name() -> None:
    model, graph = Multiclass(("cat", "dog")), Multiclass(("dog", "emu"))
    assert model.recoded(torch.tensor([0, 1, -1]), graph).tolist() == [1, -1, -1]  # type: ignore[union-attr]
    labels, turned = Multilabel(("a", "b")), Multilabel(("b", "c", "a"))
    y = torch.tensor([[1.0, 0.0, 0.0], [NAN, NAN, NAN]])
    found = labels.recoded(y, turned)
    assert found is not None
    assert found[0].tolist() == [0.0, 1.0]
    assert bool(found[1].isnan().all())
    assert labels.recoded(y[:, :2], Multilabel(("b", "c"))) is None
    assert labels.recoded(torch.tensor([0]), graph) is None


def test_the_width_of_a_model() -> None:
    train, val = torch.tensor([True, False, False, False]), torch.tensor([False, True, False, False])
    sets = Masks(train, val)
    y = torch.tensor([0, 1, 5, -1])  # the third is a test node: its class is not looked at
    assert training_task(y, [sets], 4).num_outputs == 2
    assert training_task(y, [sets, Masks(train, ~train & (y == 5))], 4).num_outputs == 6
    assert training_task(torch.zeros_like(y), [sets], 4).num_outputs == 2
    assert training_task(y, [sets], 4, num_classes=9).num_outputs == 9
    assert training_task(torch.zeros(4, 1), [sets], 4).num_outputs == 1
    with pytest.raises(InputError, match="y has class 1 but num_classes is 1"):
        training_task(y, [sets], 4, num_classes=1)
    with pytest.raises(InputError, match="num_classes = 3 but y has 2 labels per node"):
        training_task(torch.zeros(4, 2), [sets], 4, num_classes=3)
    with pytest.raises(InputError, match=r"node 0 is in split.train but y has no label"):
        training_task(torch.full((4, 2), 0.5), [sets], 4)
    with pytest.raises(InputError, match=r"y must be a tensor of shape \[5\] or \[5, L\]"):
        training_task(y, [sets], 5)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((50, 50), "accuracy"), ((21, 79), "accuracy"), ((15, 85), "balanced_accuracy"),
     ((9, 91), "average_precision"), ((98, 2), "average_precision"), ((85, 10, 5), "balanced_accuracy"),
     ((40, 59, 1), "accuracy")],
)  # fmt: skip
def test_the_metric_that_follows_from_the_labels(sizes: tuple[int, ...], expected: str) -> None:
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    name, why = Multiclass.of_width(len(sizes)).default_metric(labels)
    assert name == expected
    assert bool(why) == (expected != "accuracy")


def test_the_sentence_on_why_names_the_class_and_the_flag() -> None:
    labels = torch.tensor([0] * 98 + [1] * 2)
    assert Multiclass(("fair", "fraud")).default_metric(labels)[1] == (
        "Classes are imbalanced (2.0 % of the training labels are fraud), so average precision decides; "
        "--metric accuracy changes that."
    )


def test_class_weights_are_one_on_average() -> None:
    labels = torch.tensor([0] * 6 + [1] * 3 + [2])
    task = Multiclass(("a", "b", "c"))
    balanced = task.learned(labels, "balanced").weights(labels)
    assert balanced is not None
    by_class = [float(balanced[labels == k].sum()) for k in range(3)]
    assert by_class == pytest.approx([10 / 3] * 3)
    chosen = task.learned(labels, {"c": 5}).weights(labels)
    assert chosen is not None
    assert float(chosen.mean()) == pytest.approx(1)
    assert float(chosen[-1] / chosen[0]) == pytest.approx(5)
    for wrong, words in (
        ("even", "must be 'balanced'"),
        ({"d": 1}, "class 'd'"),
        ({"a": 0}, "positive number"),
    ):
        with pytest.raises(InputError, match=words):
            task.learned(labels, wrong)
    with pytest.raises(InputError, match="one class per node"):
        Multilabel.of_width(2).learned(torch.zeros(3, 2), "balanced")


def test_a_task_survives_json() -> None:
    task = Multiclass(("a", "b"), "roc_auc", (0.5, 2.0), 1, 0.25, 1.5)
    assert Multiclass.from_settings(("a", "b"), {**task.settings(), "class_weights": [0.5, 2.0]}) == task
    with pytest.raises(InputError, match="no field 'depth'"):
        Multiclass.from_settings(("a",), {"depth": 1})
    with pytest.raises(InputError, match="not one of those for multiclass data"):
        Multiclass.from_settings(("a",), {"metric_name": "r2"})


def numbers(nodes: int = 60) -> tuple[Regression, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    y = 1000 + 30 * torch.randn(nodes, generator=generator, dtype=torch.float64)
    return Regression().learned(y), torch.randn(nodes, 1, generator=generator), y


def test_losses_of_numbers_by_their_formula() -> None:
    task, logits, y = numbers()
    gap = (logits.double().squeeze(1) - (y - y.mean()) / y.std(correction=0)).abs()
    expected = torch.where(gap < 1, gap**2 / 2, gap - 0.5)
    torch.testing.assert_close(task.losses(logits.double(), y), expected)
    squared = Regression(loss="squared").learned(y)
    torch.testing.assert_close(squared.losses(logits.double(), y), gap**2 / 2)


def test_scores_of_numbers_are_scikit_learns() -> None:
    task, logits, y = numbers()
    said = task.probabilities(logits.double())
    scores = task.scores(y, said)
    assert list(scores) == ["r2", "mae", "rmse"]
    assert scores["r2"] == pytest.approx(sklearn.metrics.r2_score(y, said[:, 0]))
    assert scores["mae"] == pytest.approx(sklearn.metrics.mean_absolute_error(y, said[:, 0]))
    assert scores["rmse"] == pytest.approx(sklearn.metrics.root_mean_squared_error(y, said[:, 0]))
    for name in scores:
        chosen = task.with_metric(name)
        interval = chosen.interval(y, said)
        assert interval is not None
        assert interval.low < scores[name] < interval.high


def test_groups_of_numbers_are_of_equal_size() -> None:
    task, _, y = numbers(100)
    y[7] = NAN
    groups = task.strata(y)
    assert groups[7] == -1
    assert torch.bincount(groups[groups >= 0]).tolist() == [10] * 9 + [9]
    assert float(y[groups == 0].max()) < float(y[groups == 9].min())


@pytest.mark.parametrize(
    "name", ["balanced_accuracy", "macro_f1", "roc_auc", "average_precision", "log_loss"]
)
@pytest.mark.parametrize("classes", [2, 4])
def test_merits_of_stacked_runs_are_the_metric_of_each(name: str, classes: int) -> None:
    task, logits, y = single(classes=classes)
    task = task.learned(y).with_metric(name)
    stack, labels = torch.stack([logits, -logits, logits]), torch.stack([y, y, y])
    present = torch.ones(3, 40)
    present[2, 30:] = 0
    found = task.merits(stack, labels, present)
    for k, nodes in enumerate((40, 40, 30)):
        expected = task.scores(y[:nodes], task.probabilities(stack[k, :nodes].double()))[name]
        assert float(found[k]) == pytest.approx(task.metric.sign * expected, abs=1e-9)
