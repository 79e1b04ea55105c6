"""An ensemble of several configurations, which validation could not tell apart."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import command
import plap
from plap.fitting import FitResult, FitSettings
from plap.fitting.artifacts import SavedModel, load_model
from plap.fitting.estimator import PGNNClassifier
from plap.fitting.prediction import member_configs, predict_nodes
from plap.fitting.search import fit_model
from plap.reporting.terminal import show_fit
from plap.training import RunConfig, TuneResult, tune
from plap.training.halving import ranked

DATA = plap.data.csbm(phi=-0.75, n=120, f=12, d=8.0, seed=1)
MODELS = ("pgnn", "deep-pgnn")


@pytest.fixture(scope="module")
def result() -> FitResult:
    """The best of each model come first, and only the second of all is as good as the first."""
    answers = itertools.chain([True], itertools.repeat(False))

    def best_of_each_first(*given: Any) -> list[RunConfig]:
        order = ranked(*given)
        best = {config.model: config for config in reversed(order)}
        return [*best.values(), *(config for config in order if config not in best.values())]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plap.training.halving.as_good", lambda *_: next(answers))
        patch.setattr("plap.training.halving.ranked", best_of_each_first)
        patch.setattr("plap.training.halving._FEW_NODES", 0)
        found = plap.fit(DATA, models=MODELS, budget=300, max_epochs=12, seeds=5, rivals=(), bagging=False)
    assert len(found.fitted.runners_up) == 1
    return found


@pytest.fixture(scope="module")
def folder(result: FitResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return result.save(tmp_path_factory.mktemp("fitted") / "out")


def test_members_take_turns(result: FitResult) -> None:
    fitted = result.fitted
    assert [fitted.is_of_winner(run) for run in fitted.ensemble.runs] == [True, False, True, False, True]
    assert [run.config.seed for run in fitted.ensemble.runs] == [0, 0, 1, 1, 2]
    assert fitted.config not in fitted.runners_up


def test_a_saved_ensemble_predicts_as_before(result: FitResult, folder: Path) -> None:
    model = load_model(folder)
    assert member_configs(model) == [run.config for run in result.fitted.ensemble.runs]
    again = torch.from_numpy(predict_nodes(model, DATA).probabilities)
    torch.testing.assert_close(again, result.model.probabilities)


def test_both_are_told(result: FitResult, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["config"] == result.fitted.config.to_dict()
    assert [other["model"] for other in metrics["runners_up"]] == [result.fitted.runners_up[0].model]
    assert [member["runner_up"] for member in metrics["members"]] == [False, True, False, True, False]
    page = (folder / "report.html").read_text()
    assert "<h3>Runner-up</h3>" in page
    assert "2 of the 5 members of the ensemble have that of the runner-up" in page
    assert "seed 0, runner-up" in page
    show_fit(result.content, folder)
    said = " ".join(capsys.readouterr().out.split())
    assert "2 of the 5 members of the ensemble have that of the runner-up" in said


def test_members_that_divide_the_nodes_take_turns_at_all_that_are_as_good(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("plap.training.halving.as_good", lambda *_: True)
    result = plap.fit(DATA, models=("pgnn",), budget=9000, max_epochs=4, seeds=6, rivals=())
    fitted = result.fitted
    together = [fitted.config, *fitted.runners_up]
    count = len(together)
    assert 2 < count < 6
    configs = [run.config for run in fitted.ensemble.runs]
    assert configs == [together[k % count].with_values(seed=k) for k in range(6)]
    metrics = json.loads((result.save(tmp_path / "out") / "metrics.json").read_text())
    assert metrics["runners_up"] == [config.to_dict() for config in fitted.runners_up]
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"<h3>Runner-up {count - 1}</h3>" in page
    show_fit(result.content, tmp_path)
    said = " ".join(capsys.readouterr().out.split())
    others = sum(not fitted.is_of_winner(run) for run in fitted.members)
    sentence = (
        f"{count} configurations that validation cannot tell apart predict together: {others} of the 6 "
        "members of the ensemble have those of runners-up"
    )
    assert f"{sentence}." in page
    assert f"{sentence}. What differs: · " in said


def test_what_asks_the_members_asks_all_of_them(result: FitResult, folder: Path, tmp_path: Path) -> None:
    assert result.edge_trust is not None
    assert result.edge_trust.isfinite().all()
    assert result.explain(0).predicted
    exported = result.export(tmp_path / "model.pt2")
    assert (exported.members, exported.difference < 1e-4) == (5, True)


def test_inspect_and_attack(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(folder, out)
    assert command.run(monkeypatch, "inspect", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)["configurations"]
    assert [part["members"] for part in found] == [3, 2]
    assert {part["config"]["model"] for part in found} == {*MODELS}
    flags = ("--budget", "0.05", "--steps", "2", "--members", "3", "--poison", "--json")
    assert command.run(monkeypatch, "attack", out, *flags) == 0
    assert json.loads(capsys.readouterr().out)["members"] == 3


def test_the_estimator_reads_and_writes_it(result: FitResult, folder: Path) -> None:
    model = PGNNClassifier.load(folder)
    said = torch.from_numpy(model.predict_proba(DATA.graph, DATA.x))
    torch.testing.assert_close(said.float(), result.model.probabilities.float())
    assert member_configs(model.to_saved_model()) == member_configs(result.saved_model)


@pytest.mark.parametrize(
    ("configs", "said"),
    [({}, "must hold a list of configurations"), ([{}], "1 configurations for 5 members")],
    ids=["no list", "too few"],
)
def test_what_a_file_must_not_say(result: FitResult, tmp_path: Path, configs: object, said: str) -> None:
    header, weights = result.saved_model.encode()
    changed = json.dumps(json.loads(header) | {"configs": configs}).encode()
    with pytest.raises(plap.InputError, match=said):
        SavedModel.decode(changed, weights, tmp_path)


def test_a_file_of_the_version_before(tmp_path: Path) -> None:
    alone = plap.fit(DATA, search=False, seeds=2, max_epochs=5, rivals=())
    header, weights = alone.saved_model.encode()
    earlier = json.loads(header) | {"format_version": 3}
    del earlier["configs"]
    model = SavedModel.decode(json.dumps(earlier).encode(), weights, tmp_path)
    again = torch.from_numpy(predict_nodes(model, DATA).probabilities)
    torch.testing.assert_close(again, alone.model.probabilities)


def test_a_runner_up_that_cannot_be_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a user's model, for instance, that a search tries by itself."""
    monkeypatch.setattr("plap.training.halving.as_good", lambda *_: True)
    monkeypatch.setattr("plap.fitting.search.suitable_models", lambda *_: ["gcn"])
    found = plap.fit(DATA, budget=300, max_epochs=12, seeds=2, rivals=())
    assert "gcn" in {run.config.model for run in found.fitted.members}
    assert found.edge_trust is None
    assert found.page
    with pytest.raises(plap.InputError, match="can be explained, not those of gcn"):
        found.explain(0)


def test_no_more_members_than_wanted_when_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finalists predict then, the winner's first run before all others."""
    monkeypatch.setattr("plap.training.halving.as_good", lambda *_: True)

    def out_of_time(*args: Any, **options: Any) -> TuneResult:
        found = tune(*args, **options)
        runs = tuple(replace(run, out_of_time=True) for run in found.finalists if run.config.seed)
        return replace(found, finalists=runs)

    monkeypatch.setattr("plap.fitting.search.tune", out_of_time)
    found = fit_model(
        DATA.graph, DATA.x, DATA.y, plap.data.split(DATA), FitSettings(budget=9000, max_epochs=4, seeds=3)
    )
    assert found.out_of_time
    assert len(found.members) == 3
    assert found.is_of_winner(found.members[0])
    assert len(found.runners_up) == 2
