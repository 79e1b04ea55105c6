"""The README's example prints what the README says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert found is not None
    exec(found[1], {})
    printed = capsys.readouterr().out
    shares = [[float(share) for share in re.findall(r"([\d.]+)%", part)] for part in (printed, found[2])]
    assert re.sub(r"[\d.]+%", "", printed) == re.sub(r"[\d.]+%", "", found[2])
    assert shares[0] == pytest.approx(shares[1], abs=2.0)  # other processors round differently
