"""Raw columns of people's tables: roles, splits, odd writing, bad rows; and features that they become."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from customer_graph import Style, write_customer_graph
from plap import InputError
from plap.data import load_folder, load_npz
from plap.data.tables.assembly import encode_columns
from plap.data.tables.options import TableOptions

EDGES = "source,target\na,b\nb,c\nc,d\nd,e\ne,f\n"
NODES = """id,label,age,city,member
a,u,31,Bern,yes
b,v,,Wien,no
c,u,52,Bern,no
d,v,47,,yes
e,u,39,Wien,no
f,v,28,Bern,yes
"""


def folder(path: Path, nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> Path:
    for name, content in (("nodes.csv", nodes), ("edges.csv", edges)):
        (path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_columns_become_features_and_the_dictionary_says_how(tmp_path: Path) -> None:
    data = load_folder(folder(tmp_path))
    assert data.columns is not None
    dictionary = data.columns.dictionary
    assert dictionary is not None
    assert {entry.name: str(entry.kind) for entry in dictionary} == {
        "age": "number", "city": "category", "member": "boolean", "id": "not read", "label": "not read",
    }  # fmt: skip
    assert dictionary.entries[-1].sentence == "label: the label, what is predicted"
    assert data.x.shape == (6, len(data.feature_names or ()))
    age = data.x.to_dense()[:, (data.feature_names or ()).index("age")]
    assert abs(float(age.mean())) < 0.5
    assert torch.isfinite(data.x.to_dense()).all()


def test_scaling_looks_at_the_training_rows_alone(tmp_path: Path) -> None:
    rows = "".join(f"n{k},{'uv'[k % 2]},{k if k < 10 else 1000 * k}\n" for k in range(20))
    edges = "source,target\n" + "".join(f"n{k},n{k + 1}\n" for k in range(19))
    data = load_folder(
        folder(tmp_path, "id,label,size\n" + rows, edges), TableOptions(encode=False, numeric=["size"])
    )
    assert data.x.shape == (20, 0)
    train = torch.arange(20) < 10
    x = encode_columns(data, train).x.to_dense()
    assert float(x[train].mean()) == pytest.approx(0, abs=1e-5)
    other = load_folder(
        folder(tmp_path, "id,label,size\n" + rows.replace("19000", "5"), edges),
        TableOptions(encode=False, numeric=["size"]),
    )
    assert torch.equal(encode_columns(other, train).x.to_dense()[train], x[train])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_every_writing_of_a_table_gives_the_same_data(tmp_path: Path, encoding: str, separator: str) -> None:
    style = Style(separator=separator, decimal="," if separator == ";" else ".", encoding=encoding)
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    write_customer_graph(plain, nodes=80, edges=200, missing=0.1)
    write_customer_graph(odd, nodes=80, edges=200, missing=0.1, style=style)
    one, other = load_folder(plain), load_folder(odd)
    assert one.feature_names == other.feature_names
    torch.testing.assert_close(one.x.to_dense(), other.x.to_dense())
    assert one.graph.digest == other.graph.digest
    if encoding == "cp1252":
        assert any("Windows-1252" in note for note in other.notes)


ROLES = [
    ({"id": "name", "label": "kind"}, "name,kind,label\na,u,1\nb,v,2\nc,u,3\nd,v,4\ne,u,5\nf,v,6\n"),
    ({"id": "ID "}, "ID,label,age\na,u,1\nb,v,2\nc,u,3\nd,v,4\ne,u,5\nf,v,6\n"),
]


@pytest.mark.parametrize(("roles", "nodes"), ROLES)
def test_roles_that_the_user_names(tmp_path: Path, roles: dict[str, str], nodes: str) -> None:
    data = load_folder(folder(tmp_path, nodes), TableOptions(**roles))  # type: ignore[arg-type]
    assert list(data.node_ids) == list("abcdef")
    assert data.class_names == ("u", "v")


def test_a_role_that_is_not_there_is_refused_with_what_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--label names the column 'labl', which is not there \(did you"):
        load_folder(folder(tmp_path), TableOptions(label="labl"))
    with pytest.raises(InputError, match="--categorical names the column 'towm'"):
        load_folder(folder(tmp_path), TableOptions(categorical=["towm"]))
    with pytest.raises(InputError, match=r"edges\.csv: --target .*--label names the column to predict"):
        load_folder(folder(tmp_path), TableOptions(target="churned"))


def test_a_guess_is_stated(tmp_path: Path) -> None:
    nodes = NODES.replace("id,label", "id,target", 1)
    data = load_folder(folder(tmp_path, nodes, EDGES.replace("source,target", "u,v,amount").replace(
        "a,b", "a,b,2.5").replace("b,c", "b,c,4").replace("c,d", "c,d,1").replace("d,e", "d,e,7").replace(
        "e,f", "e,f,3")))  # fmt: skip
    said = " ".join(data.notes)
    assert "'target' is taken for the label; --label names another" in said
    assert "'u' is taken for the source" in said
    assert "--weight amount uses it" in said
    assert data.class_names == ("u", "v")
    assert not data.graph.is_weighted


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("split", ["train", "train", "val", "val", "test", "test"]),
        ("Split", ["0", "0", "1", "1", "2", "2"]),
        ("fold", ["training", "Training", "dev", "dev", "test", "holdout"]),
        ("train_mask,val_mask,test_mask", ["1,0,0", "1,0,0", "0,1,0", "0,1,0", "0,0,1", "0,0,1"]),
    ],
)
def test_a_split_is_used_and_is_never_a_feature(tmp_path: Path, header: str, cells: list[str]) -> None:
    lines = NODES.splitlines()
    nodes = "\n".join([f"{lines[0]},{header}", *(f"{a},{b}" for a, b in zip(lines[1:], cells, strict=True))])
    data = load_folder(folder(tmp_path, nodes))
    assert data.splits is not None
    assert data.splits.preferred
    parts = [mask[:, 0].nonzero()[:, 0].tolist() for mask in data.splits.masks]
    assert parts == [[0, 1], [2, 3], [4, 5]]
    assert all("mask" not in name and "fold" not in name.lower() for name in data.feature_names or ())
    assert any("the split is taken from" in note for note in data.notes)


def test_a_split_without_validation_takes_it_from_training(tmp_path: Path) -> None:
    rows = "".join(f"n{k},{'uv'[k % 2]},{k},{'test' if k > 14 else 'train'}\n" for k in range(20))
    edges = "source,target\n" + "".join(f"n{k},n{k + 1}\n" for k in range(19))
    data = load_folder(folder(tmp_path, "id,label,size,split\n" + rows, edges))
    assert data.splits is not None
    assert int(data.splits.val.sum()) == 3
    assert int(data.splits.train.sum()) == 12
    assert any("no validation nodes" in note for note in data.notes)


def test_bad_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    nodes = NODES + "a,u,1,Bern,yes\n,u,1,Bern,yes\ng,w,twelve,Bern,yes\n"
    edges = EDGES + "a,zed\n,b\nf,g\n"
    data = load_folder(folder(tmp_path, nodes, edges), TableOptions(on_bad_rows="drop"))
    assert list(data.node_ids) == list("abcdefg")
    assert data.graph.num_edges == 6
    said = " ".join(data.notes)
    assert "nodes.csv: 2 rows were dropped (line 9, column 'id': the id of a node is missing" in said
    assert "the id 'a' is there twice" in said
    assert "edges.csv: 2 rows were dropped" in said
    assert "seen once in 'label' and so made unknown: 'w'" in said
    assert data.class_names == ("u", "v")
    with pytest.raises(InputError, match=r"nodes.csv, line 9, column 'id': the id of a node is missing"):
        load_folder(tmp_path)


def test_minus_one_and_one_are_two_classes(tmp_path: Path) -> None:
    nodes = NODES.replace(",u,", ",1,").replace(",v,", ",-1,")
    data = load_folder(folder(tmp_path, nodes))
    assert data.class_names == ("-1", "1")
    assert any("-1 and 1 in 'label' are two classes" in note for note in data.notes)
    for old, new in (("a,1", "a,2"), ("c,1", "c,2"), ("e,1", "e,0"), ("f,-1", "f,0")):
        nodes = nodes.replace(old, new)
    three = load_folder(folder(tmp_path, nodes))
    assert three.class_names == ("0", "2")
    assert three.y.tolist() == [1, -1, 1, -1, 0, 0]


def test_another_mark_of_unknown(tmp_path: Path) -> None:
    data = load_folder(folder(tmp_path, NODES.replace("b,v", "b,?")), TableOptions(unknown="?"))
    assert data.y.tolist() == [0, -1, 0, 1, 0, 1]


def test_codes_are_categories_when_the_user_says_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = "".join(f"n{k},{'uv'[k % 2]},{rng.choice([4111, 5812, 7995])}\n" for k in range(60))
    edges = "source,target\n" + "".join(f"n{k},n{k + 1}\n" for k in range(59))
    place = folder(tmp_path, "id,label,mcc\n" + rows, edges)
    assert any("--categorical mcc reads it so" in note for note in load_folder(place).notes)
    data = load_folder(place, TableOptions(categorical=["mcc"]))
    assert data.feature_names is not None
    assert sum("4111" in name or "5812" in name or "7995" in name for name in data.feature_names) == 3


def test_a_table_without_any_feature_gets_structural_ones(tmp_path: Path) -> None:
    data = load_folder(folder(tmp_path, "id,label,same\n" + "".join(f"{k},uv,1\n" for k in "abcdef")))
    assert data.feature_names is not None
    assert data.feature_names[0] == "log_degree"
    assert any("No column is a feature" in note for note in data.notes)


def test_parquet_columns_of_every_type(tmp_path: Path) -> None:
    frame = pl.DataFrame({
        "id": ["a", "b", "c", "d", "e", "f"],
        "label": ["u", "v"] * 3,
        "vector": [[1.0, 2.0]] * 3 + [[0.5, -1.0]] * 3,
        "when": pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 6), eager=True),
        "money": [1.5, None, 3.0, float("nan"), 2.0, 9.0],
        "flag": [True, False, None, True, False, True],
    })  # fmt: skip
    frame.write_parquet(tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text(EDGES)
    data = load_folder(tmp_path)
    groups = {name.split("[")[0].split(" ")[0].split("=")[0] for name in data.feature_names or ()}
    assert {"vector", "when", "money", "flag"} <= {group.split(":")[0].split("_")[0] for group in groups}
    assert torch.isfinite(data.x.to_dense()).all()


def test_masks_of_an_npz_are_its_splits(tmp_path: Path) -> None:
    masks = np.zeros((3, 2, 6), dtype=bool)
    for part in range(3):
        masks[part, :, 2 * part : 2 * part + 2] = True
    np.savez(
        tmp_path / "g.npz", edges=[[0, 1], [2, 3]], y=[0, 1, 0, 1, 0, 1], x=np.eye(6),
        train_masks=masks[0], val_masks=masks[1], test_masks=masks[2],
    )  # fmt: skip
    data = load_npz(tmp_path / "g.npz")
    assert data.splits is not None
    assert data.splits.train.shape == (6, 2)
    assert data.splits.preferred
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], y=[0, 0, 1, 1], train_mask=[1, 1, 0, 0])
    with pytest.raises(InputError, match="no array 'val_mask'"):
        load_npz(tmp_path / "g.npz")
