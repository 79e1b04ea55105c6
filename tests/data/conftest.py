"""The real benchmark files, where they lie beside the repository."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from plap.data import GraphData, load

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "datasets"


@cache
def _load(name: str, largest_component: bool) -> GraphData:
    return load(name, SHARED, largest_component=largest_component)


@pytest.fixture(scope="session")
def shared_datasets() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the benchmark files are not beside the repository (../shared/datasets)")
    return SHARED


@pytest.fixture(scope="session")
def real(shared_datasets: Path) -> Callable[..., GraphData]:
    """Load a real benchmark, once a session."""

    def load_real(name: str, *, largest_component: bool = False) -> GraphData:
        return _load(name, largest_component)

    return load_real
