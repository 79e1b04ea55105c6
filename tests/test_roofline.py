"""The prediction in docs/scale.md is the one that the kernels' binaries give."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="the extra 'gpu' is not installed")

import roofline
from sass_loop import loop_of

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"


@pytest.mark.skipif(
    importlib.metadata.version("triton") != "3.9.0", reason="the page has the binaries of Triton 3.9.0"
)
def test_the_page_has_the_tables_of_the_script() -> None:
    page = PAGE.read_text()
    assert roofline.kernel_table() in page
    assert roofline.prediction_table() in page
    assert f"{sum(roofline.launches(roofline.K))} Triton kernels" in page
    assert "**This is a prediction; nobody has run it.**" in page


def test_the_slowest_part_counts() -> None:
    found = roofline.Prediction(instructions=1.0, cache=2.0, memory=4.0, flops=3.0)
    assert (found.seconds, found.limit) == (4.0, "memory")


def test_rows_that_do_not_fit_the_cache_come_from_memory() -> None:
    gpu = roofline.GPUS[0]
    few, many = (roofline.predict("forward", gpu, nodes, 50 * nodes, 16) for nodes in (100_000, 1_000_000))
    per_entry = 16 * 4 / gpu.memory
    assert many.memory / 50_000_000 - few.memory / 5_000_000 == pytest.approx(per_entry)
    assert many.limit == "memory"


def test_a_loop_is_found_with_its_shortest_and_longest_way() -> None:
    lines = [
        "MOV R1, R2 ;", ".L_x_0:", "LDG.E R3, [R4.64] ;", "@P1 BRA `(.L_x_1) ;", "MUFU.RSQ R3, R3 ;",
        "BRA `(.L_x_2) ;", ".L_x_1:", "MUFU.LG2 R3, R3 ;", "FMUL R3, R3, R5 ;", "MUFU.EX2 R3, R3 ;",
        ".L_x_2:", "@P0 CALL.REL.NOINC `(.L_x_3) ;", "BRA `(.L_x_0) ;", ".L_x_3:", "EXIT ;", ".L_x_4:",
        "BRA `(.L_x_4) ;",
    ]  # fmt: skip
    code = "\n".join(line if line.startswith(".") else f"        /*0010*/    {line}" for line in lines)
    assert loop_of(code) == (2 + 2 + 2, 2 + 3 + 2, 1 + 2)
