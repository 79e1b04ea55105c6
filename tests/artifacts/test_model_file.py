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
from plap.artifacts import load_metrics, load_model, write_result
from plap.artifacts.model_file import ModelFile, _self_digest
from plap.data.tasks import Multiclass
from plap.errors import InputError


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
    assert ModelFile.decode(header, weights, tmp_path).classes == classes
    assert isinstance(ModelFile.decode(header, weights, tmp_path).classes[0], type(classes[0]))


def test_config_with_arrays_and_odd_keys(tmp_path: Path) -> None:
    header, weights = model(config={10: 1, 2: (1, 2), "nan": float("nan")}).encode()
    assert ModelFile.decode(header, weights, tmp_path).config == {"10": 1, "2": [1, 2], "nan": None}


def _edit(change: Callable[[dict[str, Any]], object], *, sign: bool = True) -> Callable[[bytes], bytes]:
    def edit(content: bytes) -> bytes:
        header = json.loads(content)
        change(header)
        if sign:
            header["sha256"] = _self_digest(header)
        return json.dumps(header).encode()

    return edit


@pytest.mark.parametrize(
    ("name", "damage", "problem"),
    [
        ("model.json", lambda content: content[: len(content) // 2], "not JSON"),
        ("model.json", lambda _: b"", "not JSON"),
        ("model.json", lambda _: b"\xff\xfe\x00", "not JSON"),
        ("model.json", lambda _: b"[" * 100_000, "not JSON"),
        ("model.json", lambda _: b"[1, 2]", "not written by plap"),
        ("model.json", lambda _: b'{"format": "other"}', "not written by plap"),
        ("model.json", _edit(lambda header: header.update(format_version=99)), "format version 99"),
        ("model.json", _edit(lambda header: header.pop("classes")), "'classes' is missing"),
        ("model.json", _edit(lambda header: header.update(num_features="5")), "'num_features' holds str"),
        ("model.json", _edit(lambda header: header["config"].update(p=9.0), sign=False), "was changed"),
        ("model.safetensors", lambda content: content[:-1], "damaged"),
        ("model.safetensors", lambda content: content[:50] + b"\x00" + content[51:], "damaged"),
        ("model.safetensors", lambda _: b"", "damaged"),
        ("model.safetensors", lambda _: pickle.dumps({"a": 1}), "damaged"),
        ("metrics.json", lambda content: content[:3], "damaged"),
        ("metrics.json", lambda _: b"3", "not written by plap"),
    ],
)
def test_damage_is_refused_with_the_name_of_the_file(
    out: Path, name: str, damage: Callable[[bytes], bytes], problem: str
) -> None:
    path = out / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=problem) as caught:
        (load_metrics if name == "metrics.json" else load_model)(out)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_single_changed_byte_of_the_weights_is_seen(tmp_path: Path) -> None:
    header, weights = model().encode()
    for at in range(0, len(weights), 37):
        broken = bytearray(weights)
        broken[at] ^= 1
        with pytest.raises(InputError, match="damaged"):
            ModelFile.decode(header, bytes(broken), tmp_path)


def _signed(tensors: dict[str, torch.Tensor], **changes: Any) -> tuple[bytes, bytes]:
    """A well-formed pair of files with other weights than plap would write."""
    import hashlib  # noqa: PLC0415

    weights = safetensors.torch.save(tensors)
    header = json.loads(model().encode()[0]) | changes
    header["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    header["sha256"] = _self_digest(header)
    return json.dumps(header).encode(), weights


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not those that model\.json lists"):
        ModelFile.decode(*_signed({"0/lin.weight": torch.zeros(2)}), tmp_path)
    with pytest.raises(InputError, match="belongs to no member"):
        ModelFile.decode(*_signed({"5/w": torch.zeros(2)}, shapes={"5/w": [2]}), tmp_path)
    with pytest.raises(InputError, match="'0/w' is not finite"):
        ModelFile.decode(*_signed({"0/w": torch.tensor([torch.nan])}, shapes={"0/w": [1]}), tmp_path)


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
    with pytest.raises(InputError, match=r"model\.json is missing"):
        load_model(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a folder"):
        load_model(tmp_path / "file")
