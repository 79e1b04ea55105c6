from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import plap
from artifact_samples import model, result
from plap.data.tasks import Multiclass
from plap.errors import InputError
from plap.fitting.artifacts import load_metrics, load_model, write_result
from plap.fitting.artifacts.saved_model import SavedModel


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return write_result(tmp_path / "out", result(7))


def test_what_was_written_comes_back(out: Path) -> None:
    written, read = model(7), load_model(out)
    assert read.config == written.config
    assert read.classes == ("cat", "dog", "élan")
    assert read.feature_names == written.feature_names
    assert (read.graph_digest, read.features_digest) == ("12ab", "34cd")
    assert read.versions == {
        "plap": plap.__version__,
        "torch": torch.__version__,
        "numpy": read.versions["numpy"],
    }
    assert len(read.states) == 2
    for before, after in zip(written.states, read.states, strict=True):
        assert before.keys() == after.keys()
        for name, value in before.items():
            assert torch.equal(value, after[name])


@pytest.mark.parametrize("classes", [(False, True), (3, 10), ("a", "b")])
def test_classes_keep_their_type(classes: tuple[Any, ...], tmp_path: Path) -> None:
    header, weights = model(task=Multiclass(classes)).encode()
    assert SavedModel.decode(header, weights, tmp_path).classes == classes
    assert isinstance(SavedModel.decode(header, weights, tmp_path).classes[0], type(classes[0]))


def test_config_with_arrays_and_odd_keys(tmp_path: Path) -> None:
    header, weights = model(config={10: 1, 2: (1, 2), "nan": float("nan")}).encode()
    assert SavedModel.decode(header, weights, tmp_path).config == {"10": 1, "2": [1, 2], "nan": None}


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("model.json", lambda content: content[: len(content) // 2]),
        ("model.json", lambda content: content.replace(b"1.5", b"9.0")),
        ("model.json", lambda _: b""),
        ("model.json", lambda _: b"\xff\xfe\x00"),
        ("model.safetensors", lambda content: content[:-1]),
        ("model.safetensors", lambda content: content[:50] + b"\x00" + content[51:]),
        ("model.safetensors", lambda _: b""),
        ("model.safetensors", lambda _: pickle.dumps({"a": 1})),
        ("manifest.json", lambda content: content[: len(content) // 2]),
        ("manifest.json", lambda _: b"[" * 100_000),
        ("manifest.json", lambda _: b"[1, 2]"),
        ("manifest.json", lambda content: content.replace(b"result/1", b"result/99")),
        ("metrics.json", lambda content: content[:3]),
        ("metrics.json", lambda _: b"3"),
    ],
)
def test_damage_is_refused_with_the_name_of_the_file(
    out: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    path = out / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="damaged") as caught:
        (load_metrics if name == "metrics.json" else load_model)(out)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_single_changed_byte_of_the_weights_is_seen(out: Path) -> None:
    path = out / "model.safetensors"
    weights = path.read_bytes()
    for at in range(0, len(weights), 37):
        broken = bytearray(weights)
        broken[at] ^= 1
        path.write_bytes(broken)
        with pytest.raises(InputError, match="damaged"):
            load_model(out)


def test_files_of_two_results_are_not_mixed(out: Path, tmp_path: Path) -> None:
    other = write_result(tmp_path / "other", result(8))
    (out / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(InputError, match=r"model\.safetensors cannot be read: it is damaged or was changed"):
        load_model(out)


def _header(**changes: Any) -> bytes:
    return json.dumps(json.loads(model().encode()[0]) | changes).encode()


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"[1, 2]", "not written by plap"),
        (b'{"format": "other"}', "not written by plap"),
        (b"no JSON", "not JSON"),
        (_header(format_version=99), "format version 99"),
        (json.dumps({"format": "plap-model", "format_version": 3}).encode(), "'config' is missing"),
        (_header(num_features="5"), "'num_features' holds str"),
    ],
)
def test_another_header_is_refused(header: bytes, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"model.json cannot be read: .*{problem}"):
        SavedModel.decode(header, model().encode()[1], tmp_path)


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def decode(tensors: dict[str, torch.Tensor], **changes: Any) -> SavedModel:
        return SavedModel.decode(_header(**changes), safetensors.torch.save(tensors), tmp_path)

    with pytest.raises(InputError, match=r"not those that model\.json lists"):
        decode({"0/lin.weight": torch.zeros(2)})
    with pytest.raises(InputError, match="belongs to no member"):
        decode({"5/w": torch.zeros(2)}, shapes={"5/w": [2]})
    with pytest.raises(InputError, match="'0/w' is not finite"):
        decode({"0/w": torch.tensor([torch.nan])}, shapes={"0/w": [1]})
    with pytest.raises(InputError, match="damaged"):
        SavedModel.decode(_header(), b"short", tmp_path)


def test_weights_that_are_not_finite_are_never_written() -> None:
    with pytest.raises(InputError, match="not finite"):
        model(states=({"w": torch.tensor([torch.inf])},)).encode()


@pytest.mark.parametrize(
    ("count", "names", "problem"),
    [
        (6, None, "made for 5 features, and the graph has 6"),
        (5, ("a", "b", "c", "d", "x"), "needs the feature 'e'"),
        (6, ("a", "b", "c", "d", "e", "x"), "not made for the feature 'x'"),
        (5, ("b", "a", "c", "d", "e"), "column 1 is 'a', not 'b'"),
    ],
)
def test_other_features_are_refused(
    out: Path, count: int, names: tuple[str, ...] | None, problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        load_model(out).check_features(count, names)
    assert str(out) in str(caught.value)


def test_fitting_features_pass(out: Path) -> None:
    load_model(out).check_features(5)
    load_model(out).check_features(5, ["a", "b", "c", "d", "e"])
    model(feature_names=None).check_features(5, ["whatever"] * 5)


def test_no_result_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"manifest\.json is missing"):
        load_model(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a folder"):
        load_model(tmp_path / "file")
