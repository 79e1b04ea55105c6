"""Every format of a user's own tables, on files this writes."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plap import Graph, InputError
from plap.data import load_folder, load_tables
from plap.data.tables import cells
from plap.data.tables.assembly import STRUCTURAL_NAMES, structural_features
from plap.data.tables.cells import Numbering, distinct
from plap.data.tables.name_index import NameIndex
from plap.data.tables.options import TableOptions

RAW = TableOptions(raw_features=True)

EDGES = pl.DataFrame(
    {"source": ["ann", "bob", "cy"], "target": ["bob", "cy", "cy"], "weight": [2.0, 0.5, 1.0]},
)
NODES = pl.DataFrame(
    {
        "id": ["cy", "bob", "dee", "ann", "eve"],
        "label": ["red", "blue", None, "red", "blue"],
        "age": [30.0, 40.0, 50.0, 60.0, 70.0],
        "tall": [1, 0, 0, 1, 1],
        "title": ["one", "two", "three", "four", "five"],
    }
)


def write(frame: pl.DataFrame, path: Path) -> Path:
    separator = "\t" if ".tsv" in path.name else ","
    if path.name.endswith(".parquet"):
        frame.write_parquet(path)
    elif path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(frame.write_csv(separator=separator).encode()))
    else:
        frame.write_csv(path, separator=separator)
    return path


@pytest.mark.parametrize("edges", ["csv", "tsv", "csv.gz", "tsv.gz", "parquet"])
@pytest.mark.parametrize("nodes", ["csv", "tsv.gz", "parquet"])
def test_every_format_gives_the_same_graph(tmp_path: Path, edges: str, nodes: str) -> None:
    write(EDGES, tmp_path / f"edges.{edges}")
    write(NODES, tmp_path / f"nodes.{nodes}")
    data = load_folder(tmp_path, RAW)
    expected = Graph.from_edges([(3, 1), (1, 0), (0, 0)], np.array([2.0, 0.5, 1.0], dtype=np.float32), 5)
    assert data.graph.digest == expected.digest
    assert data.node_ids == ("cy", "bob", "dee", "ann", "eve")
    assert data.class_names == ("blue", "red")
    assert data.y.tolist() == [1, 0, -1, 1, 0]
    assert data.x.tolist() == [[30, 1], [40, 0], [50, 0], [60, 1], [70, 1]]
    assert data.feature_names == ("age", "tall")
    assert data.name == tmp_path.name
    assert set(data.provenance.files) == {f"edges.{edges}", f"nodes.{nodes}"}
    assert all(len(digest) == 64 for digest in data.provenance.files.values())
    assert "Self-loops dropped: 1." in data.notes
    assert any("'title'" in note for note in data.notes)


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8", newline="")
    return path


def test_edges_alone_name_the_nodes_and_features_are_structural(tmp_path: Path) -> None:
    data = load_tables(text(tmp_path / "e.csv", "source,target\n30,10\n10,20\n"))
    assert data.node_ids == (10, 20, 30)
    assert data.graph.edge_index.tolist() == [[1, 2, 0, 0], [0, 0, 1, 2]]
    assert data.y.tolist() == [-1, -1, -1]
    assert data.feature_names == STRUCTURAL_NAMES
    assert torch.equal(data.x, structural_features(data.graph))
    assert "log_pagerank" in data.provenance.notes[-1]
    assert data.name == "e"


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("source,target", "a,b"),
        ("Target,SOURCE", "b,a"),
        ("dst,src", "b,a"),
        ("from,to", "a,b"),
        ("from,to,source,target", "z,z,a,b"),
        (" source , target ", " a , b "),
        ("source,target,when", "a,b,today"),
        ('"source","target"', '"a","b"'),
    ],
)
def test_names_of_columns(tmp_path: Path, header: str, row: str) -> None:
    data = load_tables(text(tmp_path / "edges.csv", f"{header}\n{row}\n"))
    assert data.node_ids == ("a", "b")
    assert data.graph.num_edges == 1


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_line_endings_blank_lines_and_byte_order_mark(tmp_path: Path, ending: str, bom: str) -> None:
    lines = ["source,target", "a,b", "", "b,c", "", ""]
    data = load_tables(text(tmp_path / "edges.csv", bom + ending.join(lines)))
    assert data.graph.num_edges == 2


def test_integers_written_otherwise_stay_text(tmp_path: Path) -> None:
    nodes = text(tmp_path / "nodes.csv", "id\n7\n007\n+7\n")
    data = load_tables(text(tmp_path / "edges.csv", "source,target\n7,007\n"), nodes)
    assert data.node_ids == ("7", "007", "+7")
    assert data.graph.edge_index.tolist() == [[1, 0], [0, 1]]


def test_numbers_in_one_file_match_text_in_the_other(tmp_path: Path) -> None:
    pl.DataFrame({"id": [5, 3]}).write_parquet(tmp_path / "nodes.parquet")
    pl.DataFrame({"source": ["3"], "target": ["5"]}).write_parquet(tmp_path / "edges.parquet")
    assert load_folder(tmp_path).graph.num_edges == 1


def test_ids_that_are_the_rows_are_not_kept(tmp_path: Path) -> None:
    data = load_tables(text(tmp_path / "edges.csv", "source,target\n0,1\n2,1\n"))
    assert data.node_ids == range(data.graph.num_nodes)


def test_ids_too_far_apart_for_a_table(tmp_path: Path) -> None:
    far = 2**63 - 1
    data = load_tables(text(tmp_path / "edges.csv", f"source,target\n{-far},0\n{far},0\n"))
    assert data.node_ids == (-far, 0, far)
    assert data.graph.degree.tolist() == [1, 2, 1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 40), min_size=1, unique=True), st.booleans()
)
def test_numbering_is_the_position(ids: list[int], as_text: bool) -> None:
    known = pl.Series([str(k) for k in ids]) if as_text else pl.Series(ids, dtype=pl.Int64)
    asked = [*ids[::-1], ids[0]]
    answer = Numbering(known).of(pl.Series([str(k) for k in asked]) if as_text else pl.Series(asked))
    assert answer.tolist() == [ids.index(k) for k in asked]
    assert distinct(known, known).to_list() == sorted(known.to_list())
    stranger = next(k for k in range(1000, 2000) if k not in ids)
    assert Numbering(known).of(pl.Series([str(stranger) if as_text else stranger])).tolist() == [-1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(), min_size=1, unique=True), st.integers(1, 7))
def test_hashes_find_what_a_join_finds(ids: list[str], size: int) -> None:
    asked = pl.Series([*ids[::-1], "\x00 stranger", ids[0]])
    index, known = NameIndex(), pl.Series(ids)
    parts = [known.slice(start, size) for start in range(0, len(ids), size)]
    assert pl.concat([index.add(part) for part in parts]).to_list() == ids
    assert index.add(known).is_empty()
    assert np.concatenate(list(index.find([asked]))).tolist() == Numbering(known).of(asked).tolist()


def test_an_index_of_names_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_MANY", 1)
    monkeypatch.setattr(cells, "_SLICE", 50_000)
    rng = np.random.default_rng(0)
    names = pl.Series([f"n{k}" for k in rng.permutation(150_000)])
    order = rng.integers(0, 150_000, 200_000)
    assert (Numbering(names).of(names.gather(order)) == order).all()
    assert (distinct(names, names.gather(order)) == names.sort()).all()


def test_categorical_ids_and_labels(tmp_path: Path) -> None:
    kinds = pl.Series(["a", "b"], dtype=pl.Categorical)
    pl.DataFrame({"id": kinds, "label": pl.Series(["u", "u"], dtype=pl.Categorical)}).write_parquet(
        tmp_path / "nodes.parquet"
    )
    pl.DataFrame({"source": kinds, "target": kinds.reverse()}).write_parquet(tmp_path / "edges.parquet")
    data = load_folder(tmp_path)
    assert (data.graph.num_edges, data.class_names) == (1, ("u",))


@pytest.mark.parametrize(
    ("labels", "y", "names"),
    [
        ([10, 9, None, 9, 10], [1, 0, -1, 0, 1], ("9", "10")),
        ([1.0, float("nan"), 0.0, 1.0, 0.0], [1, -1, 0, 1, 0], ("0", "1")),
        ([True, False, None, True, False], [1, 0, -1, 1, 0], ("false", "true")),
        (["b", "", "a", "a", "b"], [1, -1, 0, 0, 1], ("a", "b")),
        ([None] * 5, [-1] * 5, ()),
    ],
)
def test_labels_of_parquet(
    tmp_path: Path, labels: list[object], y: list[int], names: tuple[str, ...]
) -> None:
    pl.DataFrame({"id": range(5), "label": labels}).write_parquet(tmp_path / "nodes.parquet")
    pl.DataFrame({"source": [0], "target": [1]}).write_parquet(tmp_path / "edges.parquet")
    data = load_folder(tmp_path)
    assert data.y.tolist() == y
    assert data.class_names == names


def test_numeric_class_names_of_csv_are_in_order_of_value(tmp_path: Path) -> None:
    nodes = text(tmp_path / "nodes.csv", "id,label\n0,10\n1,9\n2,\n3,9\n4,10\n")
    data = load_tables(text(tmp_path / "edges.csv", "source,target\n0,1\n"), nodes)
    assert (data.y.tolist(), data.class_names) == ([1, 0, -1, 0, 1], ("9", "10"))


@pytest.mark.parametrize("kind", [pl.List(pl.Float64), pl.Array(pl.Int32, 2)])
def test_vector_column_of_parquet(tmp_path: Path, kind: pl.DataType) -> None:
    vectors = pl.Series("embedding", [[1, 2], [3, 4]], dtype=kind)
    pl.DataFrame({"id": [0, 1], "embedding": vectors}).write_parquet(tmp_path / "nodes.parquet")
    pl.DataFrame({"source": [0], "target": [1]}).write_parquet(tmp_path / "edges.parquet")
    data = load_folder(tmp_path, RAW)
    assert data.x.tolist() == [[1, 2], [3, 4]]
    assert data.feature_names == ("embedding[0]", "embedding[1]")


@pytest.mark.parametrize("cells", ["1 2.5|-3 4e0", "1;2.5|-3;4", "[1, 2.5]|[-3, 4]", "(1  2.5)|(-3, 4)"])
def test_vector_column_of_text(tmp_path: Path, cells: str) -> None:
    first, second = cells.split("|")
    nodes = text(tmp_path / "nodes.tsv", f"id\tfeatures\na\t{first}\nb\t{second}\n")
    data = load_tables(text(tmp_path / "edges.csv", "source,target\na,b\n"), nodes, RAW)
    assert data.x.tolist() == [[1, 2.5], [-3, 4]]


def test_sparse_features_are_kept_sparse(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": range(40)}).with_columns(
        ((pl.col("id") == k) * 1.0).alias(f"word{k}") for k in range(40)
    )
    nodes = write(frame, tmp_path / "nodes.csv")
    data = load_tables(text(tmp_path / "edges.csv", "source,target\n0,1\n"), nodes, RAW)
    assert data.x.layout == torch.sparse_csr
    assert torch.equal(data.x.to_dense(), torch.eye(40))


def test_a_header_alone_is_a_graph_without_edges(tmp_path: Path) -> None:
    nodes = text(tmp_path / "nodes.csv", "id,size\na,1\nb,2\n")
    data = load_tables(text(tmp_path / "edges.csv", "source,target\n"), nodes)
    assert (data.graph.num_nodes, data.graph.num_edges) == (2, 0)


def test_symmetrize_reaches_the_graph(tmp_path: Path) -> None:
    edges = text(tmp_path / "edges.csv", "source,target,weight\na,b,1\nb,a,3\n")
    assert load_tables(edges, symmetrize="mean").graph.weight.tolist() == [2.0, 2.0]
    with pytest.raises(InputError, match="its reverse"):
        load_tables(edges, symmetrize="error")


def test_weights_and_labels_with_decimal_commas(tmp_path: Path) -> None:
    text(tmp_path / "edges.csv", "source;target;minutes;note\n1;2;1,5;x\n2;3;0,25;y\n3;4;1.000,5;x\n")
    text(tmp_path / "nodes.csv", "id;label\n" + "".join(f"{k};{k},{k}5 €\n" for k in range(1, 8)))
    data = load_folder(tmp_path, TableOptions(weight="minutes"))
    assert sorted({round(weight, 4) for weight in data.graph.weight.tolist()}) == [0.25, 1.5, 1000.5]
    assert data.y.tolist() == pytest.approx([1.15, 2.25, 3.35, 4.45, 5.55, 6.65, 7.75])
    notes = " ".join(data.notes)
    assert "the weights in 'minutes' are written with decimal commas" in notes
    assert "the numbers in 'label' are written with decimal commas" in notes
    assert "edges.csv: not used: 'note'." in notes
    notes = " ".join(load_folder(tmp_path).notes)
    assert "'minutes' may be weights: --weight minutes uses it." in notes
    assert "edges.csv: not used: 'minutes', 'note'." in notes
    text(tmp_path / "edges.csv", "source;target;minutes\n1;2;1,5\n2;3;long\n3;4;2,5\n")
    with pytest.raises(InputError, match=r"edges.csv, line 3, column 'minutes': 'long' is not a number"):
        load_folder(tmp_path, TableOptions(weight="minutes"))


def test_columns_that_a_model_remembers_but_does_not_need_may_be_absent(tmp_path: Path) -> None:
    text(tmp_path / "edges.csv", "source,target\na,b\n")
    text(tmp_path / "nodes.csv", "id,age\na,1\nb,2\n")
    asked = TableOptions(keep_labels=False)
    data = load_folder(tmp_path, asked.following({"label": "churned", "split": "fold"}))
    assert data.y.tolist() == [-1, -1]
    assert data.splits is None
    for asked in (TableOptions(label="churned"), TableOptions(split="churned")):
        with pytest.raises(InputError, match="names the column 'churned', which is not there"):
            load_folder(tmp_path, asked)


def test_labelled_nodes_outside_a_training_mask_are_for_testing(tmp_path: Path) -> None:
    text(tmp_path / "edges.csv", "source,target\n0,1\n")
    rows = "".join(f"{k},{'uv'[k % 2] if k < 18 else ''},{int(k < 12)},{k}\n" for k in range(20))
    text(tmp_path / "nodes.csv", f"id,label,train_mask,age\n{rows}")
    data = load_folder(tmp_path)
    assert data.splits is not None
    train, val, test = (mask[:, 0] for mask in data.splits.masks)
    assert test.nonzero().squeeze(1).tolist() == [12, 13, 14, 15, 16, 17]
    assert bool(val.any())
    assert (train | val).nonzero().squeeze(1).tolist() == list(range(12))
    assert any("labelled nodes that no mask names" in note for note in data.notes)


def test_a_line_number_counts_blank_lines_and_quoted_line_breaks(tmp_path: Path) -> None:
    edges = text(tmp_path / "edges.csv", 'source,target,weight\n"a\nb",c,1\n\nc,d,nought\n')
    with pytest.raises(InputError) as caught:
        load_tables(edges)
    assert str(caught.value) == f"{edges}, line 5, column 'weight': 'nought' is not a number"


def test_structural_features_of_a_star_and_an_isolated_node() -> None:
    x = structural_features(Graph.from_edges([(0, 1), (0, 2), (0, 3)], num_nodes=5)).double().numpy()
    np.testing.assert_allclose(x[:, 0], np.log1p([3, 1, 1, 1, 0]), rtol=1e-6)
    np.testing.assert_allclose(x[:, 1], np.log1p([1, 3, 3, 3, 0]), rtol=1e-6)
    np.testing.assert_allclose(x[:, 2], [1, 1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-6)
    rank = np.expm1(x[:, 3]) / 5
    transition = np.zeros((5, 5))
    transition[0, 1:4], transition[1:4, 0], transition[:, 4] = 1, 1 / 3, 0.2
    exact = np.linalg.solve(np.eye(5) - 0.85 * transition, np.full(5, 0.03))
    np.testing.assert_allclose(rank, exact, atol=5e-3)
    assert rank.sum() == pytest.approx(1, abs=1e-5)


def test_structural_features_see_weights_and_their_scale_cancels_in_walks() -> None:
    edges, weight = [(0, 1), (1, 2)], np.array([1.0, 4.0])
    x = structural_features(Graph.from_edges(edges, weight))
    scaled = structural_features(Graph.from_edges(edges, 7 * weight))
    assert x[:, 2].tolist() == pytest.approx([1 / 5, 1 / 5 + 16 / 20, 16 / 20])
    torch.testing.assert_close(x[:, 2:], scaled[:, 2:])


def test_polars_is_only_imported_when_a_table_is_read() -> None:
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    heavy = ("polars", "matplotlib", "sklearn", "torch_geometric", "networkx")
    code = f"import sys, plap, plap.data, plap.cli; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
