"""The worked examples of CONTRIBUTING.md work."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from plap.data.metrics import METRICS
from plap.experiments.tables import load_table
from plap.models import registry

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(chapter: str, language: str) -> list[str]:
    """Code of a chapter, in order."""
    text = re.split(r"^## ", TEXT, flags=re.MULTILINE)
    (found,) = [part for part in text if part.startswith(chapter)]
    return re.findall(rf"^```{language}\n(.*?)^```", found, flags=re.MULTILINE | re.DOTALL)


def test_add_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    names: dict[str, Any] = {"__name__": __name__}
    for code in blocks("Add a model", "python"):
        exec(compile(code, "CONTRIBUTING.md", "exec"), names)
    (table,) = blocks("Add a model", "toml")
    tomllib.loads(table)
    path = tmp_path / "own.toml"
    path.write_text(table)
    assert load_table(str(path)).labels == {
        "mlp": "MLP",
        "graphsage": "GraphSAGE mean",
        "deep-sage": "GraphSAGE, four layers",
    }


@pytest.mark.parametrize("chapter", ["Add a dataset", "Add a metric"])
def test_add_a_dataset_or_a_metric(chapter: str) -> None:
    examples = blocks(chapter, "python")
    assert len(examples) == 2
    names: dict[str, Any] = {"__name__": "example"}
    known = dict(METRICS)
    try:
        for code in examples:
            exec(compile(code, "CONTRIBUTING.md", "exec"), names)
    finally:
        METRICS.clear()
        METRICS.update(known)
