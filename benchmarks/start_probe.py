"""In a process of its own: print the seconds that importing plap, or its first training step, takes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import torch


def first_call(backward: bool) -> float:
    import plap  # noqa: PLC0415

    graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    x = torch.randn(3, 16, requires_grad=True)
    begin = time.perf_counter()
    result = plap.propagate(x, graph, 1.5, 0.1, 4).sum()
    if backward:
        result.backward()
    return time.perf_counter() - begin


def main() -> None:
    what = sys.argv[1]
    if what == "first_step_here":
        first_call(backward=True)
        return
    if what == "import":
        begin = time.perf_counter()
        import plap  # noqa: PLC0415

        assert plap.__version__
        print(time.perf_counter() - begin)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        if what.endswith("cached"):
            subprocess.run([sys.executable, __file__, "first_step_here"], check=True, capture_output=True)
        print(first_call(backward="step" in what))


main()
