"""Tables and graphs of other libraries, straight into plap."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import plap
from plap import InputError

NODES = {
    "name": ["ann", "bob", "cy", "dee", "eve", "fay"],
    "team": ["a", "b", "a", "b", "a", None],
    "age": [31.0, None, 52.0, 44.0, 39.0, 28.0],
    "city": ["Bern", "Wien", None, "Bern", "Wien", "Bern"],
}
EDGES = {"caller": ["ann", "bob", "cy", "dee", "eve"], "called": ["bob", "cy", "dee", "eve", "fay"]}
ROLES: dict[str, Any] = {"id": "name", "label": "team", "source": "caller", "target": "called"}

KINDS = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "arrow": pa.table,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_data(kind: str) -> None:
    data = plap.read_tables(KINDS[kind](NODES), KINDS[kind](EDGES), **ROLES)
    expected = plap.read_tables(NODES, EDGES, **ROLES)
    assert data.graph.digest == expected.graph.digest
    assert data.feature_names == expected.feature_names
    assert torch.equal(data.x.to_dense(), expected.x.to_dense())
    assert data.y.tolist() == [0, 1, 0, 1, 0, -1]
    assert list(data.node_ids) == NODES["name"]


def test_pandas_with_an_index_types_and_mixed_cells() -> None:
    frame = pd.DataFrame(
        {
            "team": pd.Categorical(["a", "b", "a", "b", "a", "b"]),
            "when": pd.to_datetime(["2024-01-01", None, *(f"2024-0{k}-01" for k in range(2, 6))]),
            "count": pd.array([1, None, 3, 4, 5, 6], dtype="Int64"),
            "mixed": [1, "two", 1, "two", None, 1],
        },
        index=pd.Index(NODES["name"], name="name"),
    )
    data = plap.read_tables(frame, pd.DataFrame(EDGES), **ROLES)
    assert data.columns is not None
    kinds = {column.name: str(column.kind) for column in data.columns.plan or ()}
    assert kinds["when"] == "date"
    assert kinds["count"] == "number"
    assert torch.isfinite(data.x.to_dense()).all()


def test_pandas_types_that_polars_does_not_have() -> None:
    """What ``pd.cut`` and ``dt.to_period`` make of a column is a feature, and what is none is named."""
    numbers = np.array([1.5, 2.5, 0.5, 4.0, 5.0, 3.0])
    frame = pd.DataFrame(
        NODES
        | {
            "range": pd.cut(numbers, [0.0, 2.0, 4.0, 6.0]),
            "month": pd.PeriodIndex([f"2024-0{k}" for k in (1, 3, 2, 5, 4, 6)], freq="M"),
            "exact": numbers.astype(np.longdouble),
            "key": [uuid.UUID(int=k) for k in range(6)],
            "phase": numbers + 1j,
        }
    )
    data = plap.read_tables(frame, EDGES, **ROLES)
    assert data.columns is not None
    kinds = {column.name: str(column.kind) for column in data.columns.plan or ()}
    assert kinds["range"] == "vector"  # its two ends
    assert (kinds["month"], kinds["exact"], kinds["key"]) == ("date", "number", "identifier")
    assert kinds["phase"] == "unsupported"
    assert [note for note in data.notes if "'phase'" in note] == [
        "nodes: the column 'phase' holds Object values, which cannot become features, and is left out."
    ]


def test_a_table_in_memory_is_refused_where_a_path_is_wanted() -> None:
    with pytest.raises(InputError, match="must be a path here, not DataFrame"):
        plap.data.load_tables(pd.DataFrame(EDGES))


def test_networkx_with_attributes() -> None:
    graph = networkx.karate_club_graph()
    for node in graph:
        graph.nodes[node]["age"] = 20 + node % 7
    data = plap.read_tables(graph, label="club")
    assert data.class_names == ("Mr. Hi", "Officer")
    assert data.feature_names == ("age",)
    assert data.graph.is_weighted
    assert data.graph.num_edges == graph.number_of_edges()
    assert not any("Made undirected" in note for note in data.notes)
    one_way = networkx.DiGraph(graph.edges)
    for node in one_way:
        one_way.nodes[node]["club"] = graph.nodes[node]["club"]
    assert any("Made undirected" in note for note in plap.read_tables(one_way, label="club").notes)


def test_networkx_attributes_may_have_any_keys() -> None:
    graph = networkx.path_graph(6)
    for node in graph:
        graph.nodes[node].update({"label": "uv"[node % 2], 0: 0.5 * node, ("a", 1): node % 3})
    for source, target in graph.edges:
        graph.edges[source, target][7] = 1.5 + source
    data = plap.read_tables(graph, weight="7")
    assert data.feature_names == ("0", "('a', 1)")
    assert data.graph.is_weighted


def test_attributes_of_edges_are_columns() -> None:
    graph = networkx.Graph()
    for k in range(6):
        graph.add_node(k, label="uv"[k % 2], age=k)
        graph.add_edge(k, (k + 1) % 6, strength=k + 0.5, source="register")
    data = plap.read_tables(graph)
    assert not data.graph.is_weighted
    assert any("'strength' may be weights: --weight strength uses it." in note for note in data.notes)
    assert any("not used: 'strength', 'source'." in note for note in data.notes)
    assert plap.read_tables(graph, weight="strength").graph.is_weighted


def pyg(**masks: torch.Tensor) -> Any:
    data = pytest.importorskip("torch_geometric.data")
    ends = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    return data.Data(x=torch.eye(4), edge_index=ends, y=torch.tensor([0, 1, 0, 1]), **masks)


def test_pyg_masks_are_the_split() -> None:
    parts = torch.eye(4, dtype=torch.bool)
    data = plap.read_tables(pyg(train_mask=parts[0] | parts[1], val_mask=parts[2], test_mask=parts[3]))
    assert data.splits is not None
    assert data.splits.preferred
    assert data.splits.train[:, 0].tolist() == [True, True, False, False]
    with pytest.raises(InputError, match="all or none of train_mask"):
        plap.read_tables(pyg(train_mask=parts[0]))


def test_pyg_says_what_it_makes_of_labels_and_other_attributes() -> None:
    data = pyg(edge_attr=torch.rand(4, 1) + 0.1, pos=torch.zeros(4, 2))
    data.y = torch.tensor([-1, 1, -1, 1])
    found = plap.read_tables(data)
    assert (found.y.tolist(), found.class_names) == ([0, 1, 0, 1], ("-1", "1"))
    assert found.notes[:3] == (
        "The PyG Data has attributes that are not used: 'edge_attr', 'pos'.",
        "All edges count the same; 'edge_attr' may be weights: as edge_weight [E] it is used.",
        "The labels -1 and 1 are two classes, so -1 is not unknown here.",
    )
    del data.x
    data.y = torch.tensor([[0, 1], [1, 1], [1, 0], [0, 0]])
    found = plap.read_tables(data)
    assert found.task.name == "multilabel"
    assert found.x.shape == (4, 4)
    with pytest.raises(InputError, match="a PyG Data has no columns, so label = club does not apply"):
        plap.read_tables(data, label="club")


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "problem"),
    [
        (NODES, EDGES | {"caller": [*"abcd", "zed"]}, ROLES, "edges, row 0, column 'caller': the node 'a'"),
        (NODES | {"name": ["ann"] * 6}, EDGES, ROLES, "nodes, row 1, column 'name': the id 'ann' is there"),
        (pd.DataFrame([["ann", 1, 2]], columns=["name", "a", "a"]), EDGES, {}, "two columns are called 'a'"),
        (7, EDGES, {}, "the table of nodes must be a path, a pandas, Polars or Arrow table"),
        (7, None, {}, "read_tables needs a table of edges"),
        (NODES, EDGES, {"lable": "team"}, "read_tables has no option 'lable'"),
        (NODES, EDGES, ROLES | {"label": "tem"}, "--label names the column 'tem'"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(nodes: Any, edges: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        plap.read_tables(nodes, edges, **options)


def test_tables_go_straight_into_a_fit_and_a_prediction(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 80)
    nodes = pd.DataFrame({
        "id": [f"n{k}" for k in range(80)],
        "label": np.where(kind, "yes", "no"),
        "size": 1000 * rng.normal(kind, 0.4),
        "colour": np.where(rng.random(80) < 0.8, np.where(kind, "red", "blue"), "grey"),
    })  # fmt: skip
    ends = [f"n{k}" for k in rng.integers(0, 80, 400)]
    edges = pd.DataFrame({"source": ends[:200], "target": ends[200:]})
    result = plap.fit((nodes, edges), search=False, seeds=1, max_epochs=60, rivals=())
    assert result.model.scores["accuracy"] > 0.8
    again = result.predict((nodes[["colour", "size", "id"]].sample(frac=1, random_state=3), edges))
    first = dict(zip(result.predictions.node_ids, result.predictions.predicted, strict=True))
    assert dict(zip(again.node_ids, again.predicted, strict=True)) == first
    with pytest.raises(InputError, match="no column 'size', which the model needs"):
        result.predict((nodes[["id", "colour"]], edges))


def test_labels_that_pyg_stores_as_floats_are_read_as_those_of_tables() -> None:
    data = pyg()
    data.y = data.y.float()
    found = plap.read_tables(data)
    assert found.task.name == "multiclass"
    assert any("classes although they are stored as floats" in note for note in found.notes)
    assert plap.read_tables(data, task="numbers").task.numeric
    data.y = torch.tensor([0.5, 0.1, 1.5, torch.nan])
    numeric = plap.read_tables(data)
    assert numeric.task.numeric
    assert numeric.known.tolist() == [True, True, True, False]
    with pytest.raises(InputError, match=r"task='classes' needs whole numbers as labels, and y\[0\] is 0.5"):
        plap.read_tables(data, task="classes")


def test_options_of_labels_hold_for_pyg_as_well() -> None:
    data = pyg()
    data.y = torch.tensor([7, 1, 0, 1])
    assert plap.read_tables(data, unknown=7).known.tolist() == [False, True, True, True]
    assert plap.read_tables(data, task="numbers").y.tolist() == [7.0, 1.0, 0.0, 1.0]
    with pytest.raises(InputError, match="unknown must be a number for a PyG Data, not 'none'"):
        plap.read_tables(data, unknown="none")


def test_a_graph_alone_is_not_enough_to_learn_from() -> None:
    with pytest.raises(InputError, match=r"a plap\.Graph has neither features nor labels"):
        plap.fit(plap.Graph.from_edges([(0, 1)]))
