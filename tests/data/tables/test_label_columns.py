"""Labels, splits and columns as people's tables have them: what is unknown, a class, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plap.data import GraphData, split
from plap.data.measures import inspect_graph
from plap.data.tables import TableOptions, load_folder
from plap.errors import InputError


def graph(folder: Path, rows: Sequence[str], header: str = "id,label,x", **options: Any) -> GraphData:
    """A ring of as many nodes as there are rows."""
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text("\n".join([header, *rows]) + "\n")
    size = len(rows)
    edges = "\n".join(f"n{k},n{(k + 1) % size}" for k in range(size))
    (folder / "edges.csv").write_text(f"source,target\n{edges}\n")
    return load_folder(folder, TableOptions(**options))


def labelled(folder: Path, labels: Sequence[str], **options: Any) -> GraphData:
    return graph(folder, [f"n{k},{label},{k / 4}" for k, label in enumerate(labels)], **options)


def said(data: GraphData, words: str) -> bool:
    return any(words in note for note in data.notes)


def test_words_for_missing_values_are_unknown_labels(tmp_path: Path) -> None:
    data = labelled(tmp_path, ["red", "N/A", "blue", "-", "red", "n/a", "blue", "none", "none", ""])
    assert data.class_names == ("blue", "none", "red")
    assert data.known.tolist() == [True, False, True, False, True, False, True, True, True, False]
    assert said(data, "in 'label', 3 cells are ")
    data = labelled(tmp_path, ["red", "-", "blue", "-", "red", "?", "blue", "?"], unknown="?")
    assert data.class_names == ("-", "blue", "red")


def test_they_leave_a_column_of_numbers_one(tmp_path: Path) -> None:
    numbers = [f"{k + 0.25}" if k % 5 else "N/A" for k in range(20)]
    data = labelled(tmp_path, numbers)
    assert data.task.numeric
    assert data.known.tolist() == [bool(k % 5) for k in range(20)]
    with pytest.raises(InputError, match=r"line 5, column 'label': oops is not a finite number; --task"):
        labelled(tmp_path, [*numbers[:3], "oops", *numbers[4:]])
    assert labelled(tmp_path, [*numbers[:3], "oops", *numbers[4:]], keep_labels=False).task.numeric


def test_whole_numbers_beside_text_are_classes(tmp_path: Path) -> None:
    codes = [str(1000 + 7 * (k // 2)) for k in range(60)]
    assert labelled(tmp_path, codes).task.numeric
    data = labelled(tmp_path, [*codes, "A17", "A17"])
    assert len(data.class_names) == 31


def test_whole_numbers_with_a_fraction_are_the_same_classes(tmp_path: Path) -> None:
    """As pandas writes integers of which some are missing."""
    data = labelled(tmp_path, ["0.0", "1.0", "", "1.0", "0.0", "2", "2"])
    assert data.class_names == ("0", "1", "2")
    data = labelled(tmp_path, ["1.0", "1.5", "1.0", "1.5"], task="classes")
    assert data.class_names == ("1.0", "1.5")


@pytest.mark.parametrize("minus", ["-1", "-1.0"])
def test_minus_one_is_unknown_and_that_is_said(tmp_path: Path, minus: str) -> None:
    data = labelled(tmp_path, ["0", "1", minus, "1", "0", "2", "2", minus])
    assert data.class_names == ("0", "1", "2")
    assert said(data, "-1 in 'label' (2 nodes) is taken for unknown; --unknown names another mark.")
    data = labelled(tmp_path, ["0", "1", minus, "1", "0", "x", "x", minus], unknown="x")
    assert data.class_names == ("-1", "0", "1")


def test_classes_that_differ_in_case_are_told(tmp_path: Path) -> None:
    data = labelled(tmp_path, ["yes", "Yes", "no", "no", "yes", "Yes"])
    assert len(data.class_names) == 3
    assert said(data, "the classes 'Yes', 'yes' in 'label' differ in case alone")
    assert not said(labelled(tmp_path, ["yes", "no", "no", "yes"]), "in case alone")


def test_labels_follow_the_decimal_commas_of_the_table(tmp_path: Path) -> None:
    rows = [f"n{k};{k + 1},125;{k},5" for k in range(40)]
    data = graph(tmp_path, rows, "id;price;x", label="price")
    assert data.y[:3].tolist() == [1.125, 2.125, 3.125]
    assert said(data, "the numbers in 'price' are written with decimal commas, as in other columns")
    alone = graph(tmp_path, [row.rsplit(";", 1)[0] + ";7" for row in rows], "id;price;x", label="price")
    assert alone.y[0] == 1125
    assert said(alone, "commas between thousands (if those are decimal marks, write points)")


def test_a_split_that_is_not_understood_is_no_feature(tmp_path: Path) -> None:
    parts = ["train", "valid", "test", "exclude"] * 3
    rows = [f"n{k},{'ab'[k % 2]},{k / 4},{part}" for k, part in enumerate(parts)]
    data = graph(tmp_path, rows, "id,label,x,split")
    assert data.splits is not None
    assert data.feature_names == ("x",)
    rows = [f"n{k},{'ab'[k % 2]},{k / 4},{k % 3 + 1}" for k in range(12)]
    data = graph(tmp_path, rows, "id,label,x,split")
    assert data.feature_names == ("x",)
    assert said(data, "the column 'split' is not used, because its cells are not train, val and test")
    assert graph(tmp_path, rows, "id,label,x,split", categorical=["split"]).feature_names != ("x",)


def test_columns_without_a_name_are_no_features(tmp_path: Path) -> None:
    rows = [f"{k},{k + 3},n{k},{'ab'[k % 2]},{k / 4},," for k in range(8)]
    data = graph(tmp_path, rows, ",column_0,id,label,x,,")
    assert data.feature_names == ("column_0", "x")
    assert said(data, "nodes.csv: a column without a name is not used.")
    bare = graph(tmp_path, [row.split(",", 2)[2] for row in rows], "id,label,x,,")
    assert bare.feature_names == ("x",)
    assert not said(bare, "without a name")


def test_the_index_that_pandas_writes_into_parquet_is_no_feature(tmp_path: Path) -> None:
    labelled(tmp_path, ["a", "b"] * 4)
    frame = pl.read_csv(tmp_path / "nodes.csv").with_columns(__index_level_0__=pl.arange(8))
    (tmp_path / "nodes.csv").unlink()
    frame.write_parquet(tmp_path / "nodes.parquet")
    data = load_folder(tmp_path, TableOptions())
    assert data.feature_names == ("x",)
    assert said(data, "nodes.parquet: the index that pandas wrote is not used.")


def test_ids_with_a_fraction_are_those_without(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(
        "id,label,x\n" + "".join(f"{k}.0,{'ab'[k % 2]},{k}.5\n" for k in range(6))
    )
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n4,5\n")
    assert load_folder(tmp_path, TableOptions()).graph.num_edges == 3


def test_no_edges_are_worth_a_note(tmp_path: Path) -> None:
    data = labelled(tmp_path, ["a", "b"] * 4)
    assert not said(data, "There are no edges")
    (tmp_path / "edges.csv").write_text("source,target\n")
    assert said(
        load_folder(tmp_path, TableOptions()), "There are no edges, so that a model sees the features"
    )


def test_a_second_column_that_may_be_the_label_is_told(tmp_path: Path) -> None:
    rows = [f"n{k},{'ab'[k % 2]},{'uv'[k % 2]},{k / 4}" for k in range(8)]
    data = graph(tmp_path, rows, "id,label,class,x")
    assert said(
        data, "'label' is taken for the label and 'class' for a feature; --label class or --ignore class"
    )
    assert data.columns is not None
    assert data.columns.remembered()["label"] == "label"
    quiet = graph(tmp_path, rows, "id,label,class,x", ignore=["class"])
    assert not said(quiet, "for a feature")
    plain = labelled(tmp_path, ["a", "b"] * 4)
    assert plain.columns is not None
    assert "label" not in plain.columns.remembered()


def test_several_labels_need_a_split_and_are_told_so(tmp_path: Path) -> None:
    rows = [f"n{k},{k % 2},{k % 3 // 2},{k}" for k in range(9)]
    data = graph(tmp_path, rows, "id,label:a,label:b,x")
    with pytest.raises(InputError, match="a column 'split' with train, val and test must say which nodes"):
        split(data)
    assert inspect_graph(data).verdict.startswith(
        "A node may have several labels, for which homophily is not"
    )


@pytest.mark.parametrize("mark", [-999, -999.0, "-999", "-999.0", " -999 "])
@pytest.mark.parametrize("kind", ["csv", "floats", "integers"])
def test_a_mark_of_unknown_labels_is_compared_as_a_number(tmp_path: Path, kind: str, mark: Any) -> None:
    values = [-999.0 if k % 3 == 0 else 10.0 * k for k in range(90)]
    rows = pl.DataFrame({"id": [f"n{k}" for k in range(90)], "label": values})
    if kind == "integers":
        rows = rows.with_columns(pl.col("label").cast(pl.Int64))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{k},n{k + 1}\n" for k in range(89)))
    rows.write_csv(tmp_path / "nodes.csv") if kind == "csv" else rows.write_parquet(
        tmp_path / "nodes.parquet"
    )
    data = load_folder(tmp_path, TableOptions(unknown=mark))
    assert data.task.numeric
    assert int(data.known.sum()) == 60
    assert float(data.y[data.known].min()) >= 0


def test_a_mark_that_no_label_has_is_told(tmp_path: Path) -> None:
    data = labelled(tmp_path, ["a", "b", "a", "b"], unknown="?")
    assert said(data, "no cell of 'label' is '?', the mark of an unknown label")


def test_minus_one_beside_names_of_classes_is_unknown(tmp_path: Path) -> None:
    data = labelled(tmp_path, ["ok", "fraud", "-1", "ok", "fraud", "-1"])
    assert data.class_names == ("fraud", "ok")
    assert said(data, "-1 in 'label' (2 nodes) is taken for unknown")
