"""plap attack OUT, as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import command
import plap
from plap.fitting.artifacts import load_model

CSBM = "csbm:phi=0.7,n=120,f=16,d=8.0,seed=2"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("attack") / "out"
    with pytest.MonkeyPatch.context() as patch:
        arguments = ("--no-tune", "--seeds", "2", "--max-epochs", "20", "-q")
        assert command.run(patch, "fit", CSBM, "-o", out, *arguments) == 0
    return out


def test_the_curve(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--budget", "0.2", "--steps", "4", "--png", tmp_path / "curve.png")
    assert command.run(monkeypatch, "attack", fitted, *flags) == 0
    shown = capsys.readouterr().out
    assert "20 %" in shown
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert "report.html" in shown
    assert command.run(monkeypatch, "attack", fitted, *flags[:4], "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["graph"].startswith("csbm")
    assert found["members"] == 2
    assert [round(point["budget"], 3) for point in found["points"]] == [0.02, 0.05, 0.1, 0.2]
    assert 0 <= found["points"][-1]["accuracy"] <= found["clean"] <= 1
    page = (fitted / "report.html").read_text()
    assert page.count('<section id="attack-evasion">') == 1  # the second attack replaced the first
    assert page.index("attack-evasion") < page.index('<section id="provenance">')
    assert f"{found['points'][-1]['accuracy']:.1%}".replace("%", " %") in page
    assert load_model(fitted).states  # the manifest is that of the changed folder


def test_a_bagged_model_is_retrained_as_it_was_trained(
    fitted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--budget", "0.02", "--steps", "2", "--members", "2", "--poison", "--no-page", "--json")
    assert command.run(monkeypatch, "attack", fitted, *flags) == 0
    found = json.loads(capsys.readouterr().out)
    data = plap.data.load(CSBM)
    result = plap.fit(data, search=False, seeds=2, max_epochs=20, rivals=())
    curve = result.attack(0.02, steps=2, members=2, poison=True)
    assert result.bags is not None
    assert found["clean"] == curve.clean
    saved, states = load_model(fitted).states, result.saved_model.states
    assert all(saved[1][name].equal(value) for name, value in states[1].items())


def test_another_graph_is_refused_in_a_sentence(
    fitted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = CSBM.replace("n=120", "n=90")
    assert command.run(monkeypatch, "attack", fitted, "--graph", other, "--poison") == 2
    assert "is not the graph that" in " ".join(capsys.readouterr().err.split())


def test_poisoning_is_another_section_of_the_page(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(fitted, out)
    flags = ("--budget", "0.02", "--steps", "2", "--members", "1", "--poison")
    assert command.run(monkeypatch, "attack", out, *flags) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "edges changed before training" in shown
    page = (out / "report.html").read_text()
    assert page.count('<section id="attack-poisoning">') == 1
    assert "the model is then retrained" in page
    (out / "report.html").write_text("changed by hand")
    assert command.run(monkeypatch, "attack", out, *flags) == 2
    assert "report.html cannot be read: it is damaged" in capsys.readouterr().err


def test_single_nodes(
    fitted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--budget", "1", "--local", "2", "--steps", "3", "--json", "--no-page")
    assert command.run(monkeypatch, "attack", fitted, *flags) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["local"]) == (2, True)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--budget", "0"), "budget must be a number above 0 and of at most 1, not 0.0"),
        (("--poison", "--local", "2"), "an attack on single nodes comes after training"),
        (("--budget", "2"), "budget must be a number above 0 and of at most 1, not 2.0"),
        (("--graph", "csbm:phi=0.7,n=120,f=16,d=8.0,seed=3"), "is not the graph that"),
    ],
)
def test_bad_input_is_one_sentence(
    fitted: Path,
    flags: tuple[str, ...],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.run(monkeypatch, "attack", fitted, *flags) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
