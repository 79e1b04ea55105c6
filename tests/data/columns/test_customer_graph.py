"""The customer graph: its columns become features that carry its classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from customer_graph import COLUMNS, Style, write_customer_graph
from plap.data.columns import ColumnTransform, Kind, Role, infer_columns

STYLES = {
    "plain": Style(),
    "German": Style(separator=";", decimal=","),
    "quoted": Style(quoting="all", columns=COLUMNS[::-1]),
    "Latin-1": Style(encoding="latin-1"),
}


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_columns_and_neighbours_tell_the_classes(tmp_path: Path, style: Style, missing: float) -> None:
    classes = write_customer_graph(tmp_path, seed=3, missing=missing, style=style)
    nodes, edges = (
        pl.read_csv(
            (tmp_path / name).read_text(encoding=style.encoding).encode(),
            separator=style.separator,
            infer_schema=False,
        )
        for name in ("nodes.csv", "edges.csv")
    )
    assert (nodes.height, edges.height) == (600, 2475)
    train = np.random.default_rng(0).random(600) < 0.5
    plan = infer_columns(nodes, train, roles={"id": Role.ID, "label": Role.LABEL})
    names = ("age", "income", "country", "signup", "comment")
    kinds = [Kind.NUMBER, Kind.NUMBER, Kind.CATEGORY, Kind.DATE, Kind.TEXT]
    assert [plan[name].kind for name in names] == kinds
    assert {column.name for column in plan.features} == set(names)
    x = ColumnTransform.fit(nodes, train, plan).apply(nodes).matrix
    number = {name: k for k, name in enumerate(nodes["id"])}
    source, target = (np.array([number[name] for name in edges[end]]) for end in ("source", "target"))
    assert 0.8 < (classes[source] != classes[target]).mean() < 0.9
    adjacency = np.zeros((600, 600))
    adjacency[source, target] = adjacency[target, source] = 1
    around = adjacency @ x / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    model = LogisticRegression(max_iter=1000, C=0.3).fit(np.hstack([x, around])[train], classes[train])
    assert model.score(np.hstack([x, around])[~train], classes[~train]) > 0.93


def test_a_shuffled_copy_is_the_same_graph(tmp_path: Path) -> None:
    classes = write_customer_graph(tmp_path / "a", seed=1)
    shuffled = write_customer_graph(tmp_path / "b", seed=1, shuffled=7)
    first, second = (pl.read_csv(tmp_path / name / "nodes.csv") for name in "ab")
    assert first.sort("id").equals(second.sort("id"))
    assert not first.equals(second)
    assert list(first["label"]) == list(classes)
    assert list(second["label"]) == list(shuffled)
