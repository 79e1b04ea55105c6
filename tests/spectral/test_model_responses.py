"""The numbers of the responses are those that were saved."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

import problems
from plap.spectral import response_curves, response_table

GOLDEN = Path(__file__).with_name("responses.csv")


def table() -> str:
    """The table that ``responses.csv`` holds: print it to make that file anew."""
    graph = problems.random_graph(60, 0.12, seed=2)
    curves = response_curves(problems.features(60, 8), graph, mu=0.1, K=4, bins=9)
    return response_table(curves)


def read(text: str) -> tuple[list[tuple[str, str]], np.ndarray]:
    rows = list(csv.DictReader(io.StringIO(text)))
    numbers = [[float(row[key] or "nan") for key in list(row)[2:]] for row in rows]
    return [(row["model"], row["frequency"]) for row in rows], np.array(numbers)


def test_numbers_are_those_of_the_golden_file() -> None:
    names, numbers = read(table())
    expected_names, expected = read(GOLDEN.read_text())
    assert names == expected_names
    np.testing.assert_allclose(numbers, expected, rtol=1e-6, atol=1e-9)
