"""The worked examples for a dataset and a metric run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plap.data.metrics import METRICS

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING_data.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("title", ["Add a dataset", "Add a metric"])
def test_the_examples_run(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(METRICS)
    names: dict[str, object] = {"__name__": "example"}
    blocks = re.findall(r"```python\n(.*?)```", SECTIONS[title], re.DOTALL)
    assert len(blocks) == 2
    try:
        for block in blocks:
            exec(block, names)
    finally:
        METRICS.clear()
        METRICS.update(before)
