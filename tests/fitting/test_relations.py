"""Several relations between the same nodes: read, weighted, reported, predicted with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import plap
from plap import InputError
from plap.data import load_folder

SMALL = {"search": False, "seeds": 1, "max_epochs": 80, "rivals": ()}


def write(folder: Path, *, column: bool, seed: int = 0) -> Path:
    """100 nodes whose friends are of their own class, and whose mails go anywhere."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, 100)
    own = [np.flatnonzero(kind == k) for k in (0, 1)]
    source = rng.integers(0, 100, 800)
    friend = np.array([rng.choice(own[kind[k]]) for k in source[:300]])
    mail = rng.integers(0, 100, 500)
    folder.mkdir()
    names = np.array([f"n{k}" for k in range(100)])
    pl.DataFrame({"id": names, "label": np.where(kind, "u", "v"), "size": rng.normal(0.3 * kind)}).write_csv(
        folder / "nodes.csv"
    )
    edges = {
        "friends": pl.DataFrame({"source": names[source[:300]], "target": names[friend]}),
        "mails": pl.DataFrame({"source": names[source[300:]], "target": names[mail]}),
    }
    if column:
        frames = [frame.with_columns(type=pl.lit(name)) for name, frame in edges.items()]
        pl.concat(frames).write_csv(folder / "edges.csv")
    else:
        for name, frame in edges.items():
            frame.write_csv(folder / f"edges_{name}.csv")
    return folder


def test_files_and_a_column_say_the_same(tmp_path: Path) -> None:
    one = load_folder(write(tmp_path / "files", column=False))
    other = load_folder(write(tmp_path / "column", column=True))
    assert one.relations is not None
    assert other.relations is not None
    assert one.relations.names == other.relations.names == ("friends", "mails")
    assert one.graph.digest == other.graph.digest
    assert bool((one.relations.shares == other.relations.shares).all())
    assert any("2 relations" in note for note in one.notes)
    assert bool((one.relations.shares.sum(0) > 0).all())


def test_the_relation_that_helps_gets_the_weight(tmp_path: Path) -> None:
    folder = write(tmp_path / "graph", column=False)
    result = plap.fit(folder, **SMALL)  # type: ignore[arg-type]
    factors = result.metrics["relations"]
    assert factors["friends"] > 1 > factors["mails"] > 0
    rows = {row.name: row for row in result.content.relations}
    assert rows["friends"].without < rows["mails"].without
    assert "Relations" in result.page
    assert "plap attack" not in result.page
    out = result.save(tmp_path / "out")
    again = plap.fitting.prediction.predict_nodes  # the saved model has the factors
    model = plap.fitting.artifacts.load_model(out)
    said = again(model, plap.fitting.prediction.read_like(model, folder))
    assert said.predicted == result.predictions.predicted


def test_a_prediction_needs_the_relations(tmp_path: Path) -> None:
    result = plap.fit(write(tmp_path / "graph", column=False), **SMALL)  # type: ignore[arg-type]
    plain = write(tmp_path / "plain", column=True)
    pl.read_csv(plain / "edges.csv").drop("type").write_csv(plain / "edges.csv")
    with pytest.raises(InputError, match="fitted on the relations friends, mails, and plain has none"):
        result.predict(plain)


def test_several_files_need_nodes(tmp_path: Path) -> None:
    folder = write(tmp_path / "graph", column=False)
    (folder / "nodes.csv").unlink()
    with pytest.raises(InputError, match="several tables of edges need a table of nodes"):
        load_folder(folder)


@pytest.mark.parametrize("column", [False, True])
def test_a_night_with_one_of_the_relations(tmp_path: Path, column: bool) -> None:
    result = plap.fit(write(tmp_path / "graph", column=column), **SMALL)  # type: ignore[arg-type]
    night = write(tmp_path / "night", column=column)
    if column:
        pl.read_csv(night / "edges.csv").filter(pl.col("type") == "friends").write_csv(night / "edges.csv")
    else:
        (night / "edges_mails.csv").unlink()
    found = result.predict(night)
    assert not any("relation" in note for note in found.notes)
    read = plap.fitting.prediction.read_like(result.saved_model, night)
    assert read.relations is not None
    assert read.relations.names == ("friends",)
    assert bool((read.graph.weight == result.metrics["relations"]["friends"]).all())


def test_a_relation_that_the_model_does_not_know(tmp_path: Path) -> None:
    result = plap.fit(write(tmp_path / "graph", column=False), **SMALL)  # type: ignore[arg-type]
    night = write(tmp_path / "night", column=False)
    (night / "edges_mails.csv").rename(night / "edges_calls.csv")
    (note,) = [note for note in result.predict(night).notes if "relation" in note]
    assert note == "The relation 'calls' is new to the model; its edges count as they are."


def test_tables_of_relations_beside_one_of_all_edges_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "graph", column=False)
    pl.read_csv(folder / "edges_mails.csv").write_csv(folder / "edges.csv")
    data = load_folder(folder)
    assert data.relations is None
    assert (
        "Not used, because there is a table of all edges: 'edges_friends.csv', 'edges_mails.csv'."
        in data.notes
    )
