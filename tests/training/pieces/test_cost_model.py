"""The figures of docs/scale.md are what the cost model says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cost_model
import plap

DOCUMENT = Path(__file__).parents[3] / "docs" / "scale.md"


def test_the_document_has_the_numbers_of_the_model() -> None:
    said = dict(re.findall(r"^\| (\w+) \| ([\d.]+) \|$", DOCUMENT.read_text(), re.MULTILINE))
    assert said == {
        name: f"{value:.4g}" for name, value in cost_model.predict(cost_model.PAPERS, 250).items()
    }


def test_the_size_of_a_graph_is_that_of_its_arrays() -> None:
    graph = plap.Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])
    job = cost_model.Job(graph.num_nodes, graph.num_entries, 1, 1, 1, 1)
    assert job.index == graph.indices.element_size() == 4
    arrays = (graph.indptr, graph.indices, graph.weight, graph.degree)
    held = sum(array.numel() * array.element_size() for array in arrays)
    assert cost_model.predict(job, 1)["graph_gb"] * 1e9 == pytest.approx(held, abs=job.index)
