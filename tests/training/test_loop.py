from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

import tiny_training as tiny
from plap import Graph, InputError
from plap.training import Progress, RunConfig, RunResult, accuracy, build_module, micro_f1, train_runs

DATA = tiny.data()
SPLIT = tiny.masks(DATA.y)


def train(*configs: RunConfig, **options: Any) -> list[RunResult]:
    return train_runs(DATA.graph, DATA.x, DATA.y, configs, SPLIT, **options)


def best_by(rule: str, result: RunResult) -> int:
    history = list(zip(result.history.val_score.tolist(), result.history.val_loss.tolist(), strict=True))
    key = (lambda k: (-history[k][0], history[k][1])) if rule == "accuracy" else (lambda k: history[k][1])
    return min(range(len(history)), key=key) + 1


@pytest.mark.parametrize("rule", ["accuracy", "loss"])
def test_the_best_epoch_is_kept_and_the_run_ends_patience_epochs_later(
    rule: Literal["accuracy", "loss"],
) -> None:
    configs = [RunConfig(lr=0.05, max_epochs=120, patience=15, stop_by=rule, seed=k) for k in range(6)]
    results = train(*configs)
    assert any(result.epochs < 120 for result in results)
    for result in results:
        assert result.best_epoch == best_by(rule, result)
        assert result.epochs == min(120, result.best_epoch + 15)
        assert result.val_loss == result.history.val_loss[result.best_epoch - 1]
        logits, labels = result.logits[SPLIT.val], DATA.y[SPLIT.val]
        assert accuracy(labels, logits.argmax(1)) == result.val_score
        assert float(cross_entropy(logits, labels)) == pytest.approx(result.val_loss, rel=1e-4)


def test_it_learns() -> None:
    result = train(RunConfig(max_epochs=100, lr=0.05))[0]
    assert result.history.train_loss[-1] < 0.5 * result.history.train_loss[0]


def test_labels_outside_training_and_validation_are_never_read() -> None:
    poisoned = torch.where(SPLIT.train | SPLIT.val, DATA.y, -1)
    config = RunConfig(max_epochs=10)
    clean = train(config)[0]
    other = train_runs(DATA.graph, DATA.x, poisoned, [config], SPLIT)[0]
    assert torch.equal(clean.logits, other.logits)


def test_several_labels_a_node() -> None:
    y = tiny.multilabel(DATA)
    y[~(SPLIT.train | SPLIT.val)] = float("nan")
    config = RunConfig(max_epochs=40, dropout=0.0, lr=0.05, mu=10.0)
    result = train_runs(DATA.graph, DATA.x, y, [config, replace(config, seed=1)], SPLIT, dtype=torch.float64)[
        0
    ]
    start = build_module(config, DATA.x.shape[1], 3).double()
    loss = binary_cross_entropy_with_logits(
        start(DATA.x.double(), DATA.graph)[SPLIT.train], y[SPLIT.train].double()
    )
    assert float(result.history.train_loss[0]) == pytest.approx(float(loss.detach()), abs=1e-9)
    assert micro_f1(y[SPLIT.val], (result.logits[SPLIT.val] > 0).float()) == pytest.approx(result.val_score)
    assert result.val_score > 0.6


@pytest.mark.parametrize("p", [1.0, 1.001, 1.5, 2.0, 3.0, 8.0, 60.0])
@pytest.mark.parametrize("graph", ["csbm", "no edges", "equal features"])
def test_no_run_ends_in_nan(p: float, graph: str) -> None:
    x = torch.ones_like(DATA.x) if graph == "equal features" else 100 * DATA.x
    edges = Graph.from_edges([], num_nodes=60) if graph == "no edges" else DATA.graph
    configs = [
        RunConfig(p=p, mu=mu, lr=0.5, max_epochs=40, dropout=d) for mu in (1e-4, 0.1, 10) for d in (0.0, 0.5)
    ]
    for result in train_runs(edges, x, DATA.y, configs, SPLIT):
        assert bool(result.logits.isfinite().all())
        assert all(bool(value.isfinite().all()) for value in result.state.values())
        assert bool(result.history.val_loss.isfinite().all())


def stop_after(epochs: int, how: str) -> Any:
    def progress(state: Progress) -> None:
        if state.epoch == epochs:
            if how == "signal":
                os.kill(os.getpid(), signal.SIGINT)
            else:
                raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("how", ["signal", "exception"])
def test_control_c_keeps_the_best_so_far(how: str) -> None:
    configs = [RunConfig(max_epochs=50), RunConfig(max_epochs=50, K=6)]
    whole = train(*configs)[0]
    before = signal.getsignal(signal.SIGINT)
    result, never_begun = train(*configs, progress=stop_after(12, how))
    assert signal.getsignal(signal.SIGINT) is before
    assert result.interrupted
    assert result.epochs == 12
    assert torch.equal(result.history.val_loss, whole.history.val_loss[:12])
    assert accuracy(DATA.y[SPLIT.val], result.logits[SPLIT.val].argmax(1)) == result.val_score
    assert (never_begun.epochs, never_begun.best_epoch, never_begun.interrupted) == (0, 0, True)


@pytest.mark.parametrize("how", ["signal", "exception"])
def test_control_c_can_be_passed_on(how: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(RunConfig(max_epochs=50), progress=stop_after(3, how), on_interrupt="raise")


def test_an_ignored_control_c_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as below nohup
    try:
        (result,) = train(RunConfig(max_epochs=5), progress=stop_after(3, "signal"))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert (result.epochs, result.interrupted) == (5, False)


def test_progress_runs_from_nothing_to_all() -> None:
    seen: list[Progress] = []
    train(
        RunConfig(max_epochs=5), RunConfig(max_epochs=3), RunConfig(K=6, max_epochs=2), progress=seen.append
    )
    shares = [state.done for state in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    for state in seen:
        part = state.active * state.epoch / state.max_epochs
        assert state.done == pytest.approx((state.finished + part) / state.runs)
    assert len(seen) == 7
    assert (seen[-1].runs, seen[-1].finished, seen[-1].active) == (3, 3, 0)


def test_no_runs_no_results() -> None:
    assert train() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": DATA.y[:5]}, "y must be a tensor of shape"),
        ({"y": DATA.y > 0}, "y must hold integer classes"),
        ({"y": torch.where(SPLIT.val, -1, DATA.y)}, r"is in split.val but y has no label"),
        ({"splits": tiny.Masks(SPLIT.train, torch.zeros(60, dtype=torch.bool))}, "split.val has no node"),
        ({"splits": [SPLIT]}, "splits has 1 entries for 2 runs"),
        ({"x": DATA.x[:7]}, "x has 7 rows but graph has 60 nodes"),
        ({"x": DATA.x / 0}, "x contains a value that is not finite"),
        ({"num_classes": 1}, "num_classes is 1"),
        ({"dtype": torch.float16}, "dtype must be"),
        ({"on_interrupt": "stop"}, "on_interrupt must be"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"graph": DATA.graph, "x": DATA.x, "y": DATA.y, "splits": SPLIT}
    with pytest.raises(InputError, match=message):
        train_runs(configs=[RunConfig(), RunConfig(seed=1)], **{**call, **change})


@pytest.mark.parametrize("model", ["pgnn", "gcn", "gat", "jknet"])
def test_the_callers_modes_change_nothing(model: str) -> None:
    """Under autocast, compiled loops once read beyond the end of numbers that were too short."""
    config = RunConfig(model, max_epochs=4)
    (expected,) = train(config)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (cast,) = train(config)
    with torch.no_grad():
        (without,) = train(config)
    with torch.inference_mode():
        (inferred,) = train_runs(DATA.graph, DATA.x.clone(), DATA.y.clone(), [config], SPLIT)
    for found in (cast, without, inferred):
        assert torch.equal(found.logits, expected.logits)


def test_arguments_of_other_types_are_refused() -> None:
    with pytest.raises(InputError, match="configs must be a sequence of RunConfig, such as"):
        train_runs(DATA.graph, DATA.x, DATA.y, RunConfig(), SPLIT)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^y must be a tensor, not ndarray$"):
        train_runs(DATA.graph, DATA.x, DATA.y.numpy(), [RunConfig()], SPLIT)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a split must have tensors train and val, .* not Tensor"):
        train_runs(DATA.graph, DATA.x, DATA.y, [RunConfig()] * 2, (SPLIT.train, SPLIT.val))  # type: ignore[arg-type]
