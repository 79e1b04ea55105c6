"""Data flows one way: a lower layer never imports a higher one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import plap

PACKAGE = Path(plap.__file__).parent
LAYERS = (
    ("errors",),
    ("coalesce", "memory", "penalties", "split_masks", "whole_file"),
    ("edge_input",),
    ("graph",),
    ("calculus",),
    ("kernels",),
    ("propagation",),
    ("footprint",),
    ("solving", "labels", "params"),
    ("label_propagation",),
    ("nn", "data"),
    ("parts",),
    ("training", "artifacts", "report", "spectral"),
    ("minibatch", "insight"),
    ("fitting",),
    ("estimator",),
    ("experiments",),
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported(source: Path) -> set[str]:
    """Top-level parts of plap that a file imports, lazily or not."""
    found = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("plap."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "plap":
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(a.name.split(".")[1] for a in node.names if a.name.startswith("plap."))
    return found & set(LEVEL)


@pytest.mark.parametrize("source", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_only(source: Path) -> None:
    part = source.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if part in ("__init__", "__main__"):
        return
    assert part in LEVEL, f"{part} has no place in LAYERS"
    for other in imported(source) - {part}:
        assert LEVEL[other] < LEVEL[part], f"{part} imports {other}"
