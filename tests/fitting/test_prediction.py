"""Which nodes of a graph that is predicted were in the fit: by names, or where there are none by rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import plap
from plap.data import GraphData
from plap.data.tables.assembly import structural_features
from plap.fitting import FitResult
from plap.fitting.artifacts import Predictions, load_model
from plap.fitting.fitted_graph import fitted_nodes
from plap.fitting.prediction import predict_nodes, read_like, with_roles

QUICK: dict[str, Any] = {"search": False, "seeds": 1, "max_epochs": 4, "rivals": ()}
DATA = plap.data.csbm(phi=0.7, n=120, f=10, d=6.0, seed=0)
OTHER = plap.data.csbm(phi=0.7, n=120, f=10, d=6.0, seed=9)
NEW = {"unlabelled": 120}


@pytest.fixture(scope="module")
def result() -> FitResult:
    return plap.fit(DATA, **QUICK)


def pyg(data: GraphData, *, labels: bool = False, **changed: Any) -> Data:
    whole = {"x": data.x, "edge_index": data.graph.edge_index, **({"y": data.y} if labels else {})}
    return Data(**whole | changed)


def roles(table: Predictions) -> dict[str, int]:
    return dict(table.frame()["role"].value_counts().iter_rows())


def is_other(table: Predictions) -> bool:
    """Whether all nodes are new, which a note says."""
    assert table.new is not None
    told = sum(note.endswith("so they are taken for other nodes.") for note in table.notes)
    assert told == int(table.new.all())
    return set(roles(table)) == {"unlabelled"} and bool(table.new.all())


def is_fit(table: Predictions, result: FitResult, count: int = 120) -> bool:
    """Whether the first nodes are those of the fit, and the rest new."""
    assert table.new is not None
    same = list(table.roles[:count]) == list(result.predictions.roles)
    return same and not table.new[:count].any() and bool(table.new[count:].all())


@pytest.mark.parametrize("labels", [False, True])
def test_nodes_without_names_of_another_graph_are_new(result: FitResult, labels: bool) -> None:
    assert is_other(result.predict(pyg(OTHER, labels=labels)))
    assert is_other(result.predict(replace(OTHER, y=OTHER.y if labels else torch.full((120,), -1))))


@pytest.mark.parametrize("labels", [False, True])
def test_the_graph_of_the_fit_is_known_by_its_features(result: FitResult, labels: bool) -> None:
    found = result.predict(pyg(DATA, labels=labels))
    assert is_fit(found, result)
    assert found.same_rows is None
    fewer = DATA.graph.edge_index[:, 40:]
    assert is_fit(result.predict(pyg(DATA, labels=labels, edge_index=fewer)), result)
    assert is_other(result.predict(pyg(DATA, labels=labels, x=DATA.x.flip(0), edge_index=fewer)))


@pytest.mark.parametrize("labels", [False, True])
def test_rows_added_at_the_end_are_new(result: FitResult, labels: bool) -> None:
    x = torch.cat([DATA.x, OTHER.x[:5]])
    edges = torch.cat([DATA.graph.edge_index, torch.tensor([[3, 120], [121, 124]])], 1)
    y = torch.cat([DATA.y, OTHER.y[:5]]) if labels else torch.full((125,), -1)
    assert is_fit(result.predict(Data(x=x, edge_index=edges, y=y)), result)
    assert set(result.predict(Data(x=x, edge_index=edges, y=y)).roles[120:]) == {"unlabelled"}
    assert is_other(result.predict(Data(x=x.roll(1, 0), edge_index=edges)))
    assert is_other(result.predict(Data(x=x[:100], edge_index=edges[:, (edges < 100).all(0)])))


def test_the_same_edges_need_labels_beside_them(result: FitResult) -> None:
    """Two grids have the same edges, and a network of sensors has other features every day."""
    scaled = DATA.x * 2
    assert is_fit(result.predict(pyg(DATA, labels=True, x=scaled)), result)
    assert is_other(result.predict(pyg(DATA, x=scaled)))
    assert is_other(result.predict(pyg(DATA, x=scaled, y=1 - DATA.y)))


def test_features_that_all_nodes_have_tell_nothing() -> None:
    alike = replace(DATA, x=torch.ones(120, 3))
    result = plap.fit(alike, **QUICK)
    assert is_other(result.predict(pyg(OTHER, x=torch.ones(120, 3))))
    assert is_fit(result.predict(pyg(alike)), result)


def test_structural_features_change_with_every_edge() -> None:
    result = plap.fit(pyg(DATA, labels=True, x=None), **QUICK)
    assert result.data.feature_names is not None
    torch.testing.assert_close(result.data.x, structural_features(DATA.graph))
    assert is_fit(result.predict(pyg(DATA, x=None, num_nodes=120)), result)
    grown = torch.cat([DATA.graph.edge_index, torch.tensor([[0, 1], [120, 120]])], 1)
    labels = torch.cat([DATA.y, torch.tensor([-1])])
    assert is_fit(result.predict(Data(edge_index=grown, y=labels, num_nodes=121)), result)
    assert is_other(result.predict(pyg(OTHER, x=None, num_nodes=120)))


def rare(seed: int) -> torch.Tensor:
    order = torch.randperm(120, generator=torch.Generator().manual_seed(seed))
    return (order < 5).long()


@pytest.mark.parametrize("ids", [(), tuple(range(1000, 1120))])
def test_labels_of_a_rare_class_agree_by_chance(ids: tuple[int, ...]) -> None:
    """Numbers as names are those of another graph as easily as rows are."""
    result = plap.fit(replace(DATA, y=rare(1), node_ids=ids), **QUICK)
    other = replace(OTHER, y=rare(2), node_ids=ids)
    assert float((other.y == result.data.y).double().mean()) > 0.9
    assert is_other(result.predict(other))


def test_a_few_labels_may_change(result: FitResult) -> None:
    y = DATA.y.clone()
    y[:6] = 1 - y[:6]
    named = plap.fit(replace(DATA, node_ids=[f"n{k}" for k in range(120)]), **QUICK)
    assert is_fit(result.predict(pyg(DATA, y=y)), result)
    assert is_fit(named.predict(replace(named.data, y=y)), named)


def test_names_are_found_whatever_the_features_are() -> None:
    names = [f"n{k}" for k in range(120)]
    result = plap.fit(replace(DATA, node_ids=names), **QUICK)
    other = replace(OTHER, y=torch.full((120,), -1), node_ids=[*names[60:], *(f"m{k}" for k in range(60))])
    found = result.predict(other)
    assert found.new is not None
    assert found.new.tolist() == [False] * 60 + [True] * 60
    assert list(found.roles[:60]) == list(result.predictions.roles[60:])


def test_names_that_the_fit_did_not_have_are_no_rows_of_it(result: FitResult) -> None:
    assert is_other(result.predict(replace(OTHER, node_ids=list(range(120)), y=torch.full((120,), -1))))
    assert is_fit(result.predict(replace(DATA, node_ids=[f"n{k}" for k in range(120)])), result)


def test_a_saved_fit_knows_it_too(result: FitResult, tmp_path: Path) -> None:
    """And one of an earlier version, whose file does not say whether nodes had names."""
    out = result.save(tmp_path / "out")
    for name, data in (("same", DATA), ("other", OTHER)):
        np.savez(tmp_path / f"{name}.npz", x=data.x.numpy(), edge_index=data.graph.edge_index.numpy())
    header, weights = result.saved_model.encode()
    kept = json.loads(header)
    assert kept["named"] is False
    del kept["named"]
    older = type(result.saved_model).decode(json.dumps(kept).encode(), weights, out)
    assert older.named is None
    for model in (load_model(out), older):
        same, other = (
            with_roles(
                predict_nodes(model, read_like(model, str(tmp_path / f"{name}.npz"))), fitted_nodes(out)
            )
            for name in ("same", "other")
        )
        assert is_fit(same, result)
        assert same.only_new().frame().height == 0
        assert is_other(other)
        assert other.only_new().frame().height == 120


@pytest.mark.parametrize("columns", ["size", "nothing"])
def test_ids_of_tables_are_names_even_where_they_are_row_numbers(columns: str, tmp_path: Path) -> None:
    def tables(name: str, seed: int, label: str) -> str:
        place = tmp_path / name
        place.mkdir()
        size = np.random.default_rng(seed).integers(0, 9, 60)
        rows = [f"{k},{label and 'ab'[k % 2]},{size[k] if columns == 'size' else ''}" for k in range(60)]
        (place / "nodes.csv").write_text("\n".join([f"id,label,{columns}", *rows]) + "\n")
        edges = [f"{k},{(k + seed) % 60}" for k in range(60)]
        (place / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
        return str(place)

    result = plap.fit(tables("fit", 1, "known"), **QUICK)
    assert result.saved_model.named is True
    found = result.predict(tables("next month", 7, ""))
    assert found.new is not None
    assert not found.new.any()
    assert list(found.roles) == list(result.predictions.roles)
