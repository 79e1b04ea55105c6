"""The Python of docs/scale.md runs, on small data of the same kind."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import plap
import tiny_training
from plap.data import FixedSplits, GraphData
from plap.data.tables.collections import load_collection

DOCUMENT = Path(__file__).parents[3] / "docs" / "scale.md"


def collection(folder: Path) -> GraphData:
    """Five graphs of three nodes with two labels each; b and d are for training."""
    for name in "abcde":
        (folder / name).mkdir(parents=True)
        (folder / name / "edges.csv").write_text("source,target\n0,1\n1,2\n")
        (folder / name / "nodes.csv").write_text(
            "id,label:x,label:y,age,size\n0,1,0,1,5\n1,0,1,2,6\n2,1,1,3,7\n"
        )
    (folder / "split.csv").write_text("graph,split\na,test\nb,train\nc,val\nd,train\ne,test\n")
    return load_collection(folder)


def one_graph() -> GraphData:
    data = tiny_training.data(nodes=120)
    parts = plap.data.split(data, seed=0)
    return replace(
        data,
        x=data.x.to_dense(),
        splits=FixedSplits(*(mask[:, None] for mask in (parts.train, parts.val, parts.test))),
    )


def test_its_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    small = {"computers": one_graph(), "ogbn-arxiv": one_graph(), "ppi": collection(tmp_path / "graphs")}
    monkeypatch.setattr(plap.data, "load", small.__getitem__)
    in_pieces, by_pyg, label_reuse = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)

    names: dict[str, object] = {}
    assert "max_epochs=200" in in_pieces
    exec(in_pieces.replace("max_epochs=200", "max_epochs=2"), names)
    assert (tmp_path / "run.checkpoint").exists()

    names = {}
    exec(by_pyg, names)
    training = names["training"]
    assert isinstance(training, list)
    assert torch.cat([graph.n_id for graph in training]).tolist() == [3, 4, 5, 9, 10, 11]

    names = {}
    assert "range(500)" in label_reuse
    exec(label_reuse.replace("range(500)", "range(2)"), names)
    probabilities = names["probabilities"]
    assert isinstance(probabilities, torch.Tensor)
    assert probabilities.shape == (120, 2)
