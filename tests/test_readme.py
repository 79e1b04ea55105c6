"""What the documents print and compute is what they say."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import plap

ROOT = Path(__file__).parents[1]


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text()
    found = re.search(r"```python\n([^`]*)```\n\n```\n([^`]*)```", text, re.DOTALL)
    assert found is not None
    exec(found[1], {})
    printed = capsys.readouterr().out
    shares = [[float(share) for share in re.findall(r"([\d.]+)%", part)] for part in (printed, found[2])]
    assert re.sub(r"[\d.]+%", "", printed) == re.sub(r"[\d.]+%", "", found[2])
    assert shares[0] == pytest.approx(shares[1], abs=2.0)  # other processors round differently


def test_a_fit_from_python_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text()
    (block,) = (code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "plap.fit(" in code)
    monkeypatch.chdir(tmp_path)
    for folder in ("mygraph", "newgraph"):
        Path(folder).mkdir()
        rows = [f"n{k},{'ab'[k % 2]},{k % 5}" for k in range(40)]
        Path(folder, "nodes.csv").write_text("\n".join(["id,label,size", *rows]))
        Path(folder, "edges.csv").write_text(
            "\n".join(["source,target", *(f"n{k},n{(k + 1) % 40}" for k in range(40))])
        )
    quick = partial(plap.fit, search=False, seeds=1, max_epochs=3)
    exec(block, {"plap": SimpleNamespace(fit=quick, data=plap.data)})
    assert Path("out", "report.html").exists()


def test_the_statements_of_the_theory_hold() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "theory.md").read_text(), re.DOTALL)
    assert len(blocks) >= 7
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)


def test_lengths_without_a_scale() -> None:
    (block,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "choose-gamma.md").read_text(), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(block, names)
    torch.testing.assert_close(names["z"], 1000 * names["y"])
