"""What the documents print and compute is what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert found is not None
    exec(found[1], {})
    printed = capsys.readouterr().out
    shares = [[float(share) for share in re.findall(r"([\d.]+)%", part)] for part in (printed, found[2])]
    assert re.sub(r"[\d.]+%", "", printed) == re.sub(r"[\d.]+%", "", found[2])
    assert shares[0] == pytest.approx(shares[1], abs=2.0)  # other processors round differently


def test_the_statements_of_the_theory_hold() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "theory.md").read_text(), re.DOTALL)
    assert len(blocks) >= 7
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
