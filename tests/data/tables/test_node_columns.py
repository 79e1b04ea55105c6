"""Raw columns of people's tables: roles, splits, odd writing, bad rows; and features that they become."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from customer_graph import Style, write_customer_graph
from plap import InputError, read_tables
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


SPLIT_NODES = "id,label,age,split\n" + "".join(
    f"{k},{'uv'[k % 2]},{30 + k % 7},{('train', 'train', 'val', 'test')[k // 2 % 4]}\n" for k in range(24)
)
RING = "source,target\n" + "".join(f"{k},{(k + 1) % 24}\n" for k in range(24))


@pytest.mark.parametrize("column", ["split", "fold"])
@pytest.mark.parametrize("cells", [["train", "val", "test"], ["test"], [""], ["new"]])
def test_a_prediction_needs_no_split(tmp_path: Path, column: str, cells: list[str]) -> None:
    (tmp_path / "fit").mkdir()
    (tmp_path / "new").mkdir()
    fitted = load_folder(
        folder(tmp_path / "fit", SPLIT_NODES.replace("split", column, 1), RING),
        TableOptions(split=None if column == "split" else column, encode=False),
    )
    assert fitted.splits is not None
    rows = "".join(f"{k + 100},{30 + k % 7},{cells[k % len(cells)]}\n" for k in range(24))
    edges = "source,target\n" + "".join(f"{k + 100},{(k + 1) % 24 + 100}\n" for k in range(24))
    options = TableOptions(keep_labels=False, encode=False).following(fitted.provenance.table)
    found = load_folder(folder(tmp_path / "new", f"id,age,{column}\n{rows}", edges), options)
    assert fitted.columns is not None
    assert found.columns is not None
    trained, _ = fitted.columns.fitted(np.ones(24, dtype=bool))
    assert trained.transform is not None
    applied, x = found.columns.applied(trained.transform)
    assert x.shape == (24, 1)
    assert applied.notes == ()


def test_a_split_without_labels_can_be_inspected(tmp_path: Path) -> None:
    nodes = "\n".join(line.replace(",u,", ",,").replace(",v,", ",,") for line in SPLIT_NODES.splitlines())
    data = load_folder(folder(tmp_path, nodes, RING))
    assert not data.known.any()
    assert data.splits is None


def test_a_split_that_leaves_too_few_labels_is_named(tmp_path: Path) -> None:
    nodes = "id,label,age,split\na,u,1,train\nb,v,2,train\nc,,3,val\nd,u,4,test\ne,v,5,test\nf,,6,\n"
    with pytest.raises(InputError, match=r"nodes\.csv: the split in 'split' has no validation nodes with"):
        load_folder(folder(tmp_path, nodes))


def test_columns_are_found_whatever_case_and_blanks_their_names_have(tmp_path: Path) -> None:
    (tmp_path / "fit").mkdir()
    (tmp_path / "new").mkdir()
    data = load_folder(
        folder(tmp_path / "fit", NODES.replace("id,label,age,city", "id, label, Age,city")),
        TableOptions(categorical=["CITY"], encode=False),
    )
    assert data.columns is not None
    columns, x = data.columns.fitted(np.ones(6, dtype=bool))
    assert columns.transform is not None
    assert "Age" in {column.name for column in columns.transform.columns}
    new = folder(tmp_path / "new", NODES.replace("id,label,age,city", "id,label,age , City"))
    found = load_folder(new, TableOptions(keep_labels=False, encode=False))
    assert found.columns is not None
    applied, again = found.columns.applied(columns.transform)
    np.testing.assert_array_equal(again, x)
    assert applied.notes == ()
    assert len(applied.drift()) == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"categorical": ["id"]}, "--categorical names 'id', but that is the id of the nodes"),
        ({"ignore": ["label"], "label": "label"}, "--label and --ignore both name the column 'label'"),
        ({"ignore": ["id"]}, "no column holds the id of a node"),
        ({"categorical": ["label"]}, "--categorical names 'label', but that is the label"),
    ],
)
def test_columns_with_two_uses_are_refused(tmp_path: Path, options: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load_folder(folder(tmp_path), TableOptions(**options))  # type: ignore[arg-type]


def test_an_ignored_column_is_not_the_label(tmp_path: Path) -> None:
    nodes = "id,label,class,age\n" + "".join(f"{k},x{k},{'uv'[k % 2]},{k}\n" for k in range(24))
    data = load_folder(folder(tmp_path, nodes, RING), TableOptions(ignore=["label"]))
    assert data.class_names == ("u", "v")
    assert data.columns is not None
    assert data.columns.remembered()["label"] == "class"


def test_the_type_of_a_column_says_that_it_is_a_category(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    codes = [str(100 + k % 7) for k in range(140)]
    ids, labels = list(range(140)), ["uv"[k % 2] for k in range(140)]
    edges = {"source": ids, "target": [*ids[1:], 0]}
    frame = pl.DataFrame({"id": ids, "label": labels, "store": codes})
    typed = frame.with_columns(pl.col("store").cast(pl.Categorical))
    typed.write_parquet(tmp_path / "nodes.parquet")
    whole = pd.DataFrame({"id": ids, "label": labels, "store": pd.Categorical([int(code) for code in codes])})
    for nodes in (typed, whole, tmp_path / "nodes.parquet"):
        names = read_tables(nodes, edges).feature_names or ()
        assert [name for name in names if name.startswith("store")] == [f"store={100 + k}" for k in range(7)]
    assert read_tables(frame, edges).feature_names == ("store",)


def test_parquet_text_has_no_blanks_around_it_and_decimals_are_numbers(tmp_path: Path) -> None:
    size = 24
    frame = pl.DataFrame(
        {
            "id": pl.Series(range(size), dtype=pl.Decimal(38, 0)),
            "label": ["b " if k % 3 else " b" if k % 2 else "a" for k in range(size)],
            "price": pl.Series([f"{k}.25" for k in range(size)]).cast(pl.Decimal(10, 2)),
        }
    )
    frame.write_parquet(tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text(RING)
    data = load_folder(tmp_path)
    assert data.class_names == ("a", "b")
    assert data.feature_names == ("price",)
    assert data.node_ids == range(24)


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_quotation_marks_inside_cells_are_part_of_them(tmp_path: Path, suffix: str) -> None:
    rows = ["id,label,name", '1,u,5" pipe', "2,v,6 pipe", '3,u,"a ""big"" one, or', 'two"', "4,v,x"]
    text = "\n".join(rows)
    if suffix == "tsv":
        text = text.replace(",", "\t").replace('"a ""big"" one\t or\ntwo"', '7" pipe')
    (tmp_path / f"nodes.{suffix}").write_text(text)
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n3,4\n")
    data = load_folder(tmp_path, TableOptions(encode=False))
    assert data.columns is not None
    expected = 'a "big" one, or\ntwo' if suffix == "csv" else '7" pipe'
    assert data.columns.frame["name"].to_list() == ['5" pipe', "6 pipe", expected, "x"]


def test_vectors_of_another_length_are_missing_where_bad_rows_are_dropped(tmp_path: Path) -> None:
    rows = "".join(f'{k},{"uv"[k % 2]},"[{k}.5, 2.0, 1.0]"\n' for k in range(23))
    nodes = f'id,label,v\n{rows}23,v,"[1.0, 2.0]"\n'
    with pytest.raises(InputError, match=r"line 25, column 'v': '\[1.0, 2.0\]' is not a vector of 3 numbers"):
        load_folder(folder(tmp_path, nodes, RING))
    data = load_folder(folder(tmp_path, nodes, RING), TableOptions(on_bad_rows="drop"))
    assert any("1 cells cannot be read and count as missing" in note for note in data.notes)


def test_a_word_among_weights_is_no_currency(tmp_path: Path) -> None:
    edges = "source,target,weight\na,b,1\nb,c,2\nc,d,x\nd,e,4\ne,f,5\n"
    data = load_folder(folder(tmp_path, edges=edges), TableOptions(on_bad_rows="drop"))
    assert not any("currency" in note for note in data.notes)
    assert any("1 row was dropped" in note for note in data.notes)


def test_the_table_of_nodes_may_be_spelled_in_capitals(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "nodes.csv").rename(tmp_path / "Nodes.CSV")
    assert load_folder(tmp_path).class_names == ("u", "v")
