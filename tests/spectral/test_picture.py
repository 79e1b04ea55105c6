"""The picture's numbers do not change unawares, and its files are what they should be."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import image

import plap
import problems
from plap.spectral import draw_responses, response_curves, response_table

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


@pytest.mark.parametrize("ending", ["", ".png"])
def test_three_files_of_one_name(tmp_path: Path, ending: str) -> None:
    graph = problems.grid(4, 5)
    curves = response_curves(problems.features(20, 4), graph)
    files = draw_responses(curves, tmp_path / "new" / f"fig.1{ending}", title="A grid of 4 × 5")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "fig.1.csv",
        "fig.1.png",
        "fig.1.svg",
    ]
    assert files.csv.read_text() == response_table(curves)
    again = draw_responses(curves, tmp_path / "again", title="A grid of 4 × 5")
    assert again.svg.read_bytes() == files.svg.read_bytes()
    height, width, _ = image.imread(files.png).shape
    assert width >= 1200
    assert height >= 800
    root = ElementTree.fromstring(files.svg.read_text())
    assert root.tag.endswith("svg")


def test_every_curve_is_drawn_in_its_own_colour_and_named() -> None:
    from plap.spectral.picture import _figure  # noqa: PLC0415

    graph = problems.grid(4, 5)
    curves = response_curves(problems.features(20, 4), graph)
    figure = _figure(curves, "")
    gains, coherences = figure.axes
    lines = [line for line in gains.lines if not str(line.get_label()).startswith("_")]
    assert [line.get_label() for line in lines] == list(curves)
    assert len({line.get_color() for line in lines}) == len({line.get_marker() for line in lines}) == 6
    for line, response in zip(lines, curves.values(), strict=True):
        there = ~np.isnan(response.gain)
        np.testing.assert_array_equal(np.asarray(line.get_ydata()), response.gain[there])
    assert gains.get_ylabel()
    assert coherences.get_xlabel()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(curves)


def test_refuses_what_cannot_be_drawn(tmp_path: Path) -> None:
    graph = problems.path(5)
    curves = response_curves(problems.features(5), graph)
    with pytest.raises(plap.InputError, match="must map names to responses"):
        draw_responses(curves["p = 2"], tmp_path / "x")  # type: ignore[arg-type]
    with pytest.raises(plap.InputError, match="from 1 to 7 responses, not 0"):
        draw_responses({}, tmp_path / "x")
    with pytest.raises(plap.InputError, match="from 1 to 7 responses, not 8"):
        draw_responses({f"p = {k}": curves["p = 2"] for k in range(8)}, tmp_path / "x")
    (tmp_path / "file").write_text("")
    with pytest.raises(plap.InputError, match="cannot be written"):
        draw_responses(curves, tmp_path / "file" / "x")
