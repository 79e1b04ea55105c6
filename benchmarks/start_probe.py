"""In a process of its own: print the seconds that importing plap, or its first training step, takes."""

from __future__ import annotations

import os
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
    if what == "import":
        begin = time.perf_counter()
        import plap  # noqa: PLC0415

        assert plap.__version__
        print(time.perf_counter() - begin)
        return
    with tempfile.TemporaryDirectory() as folder:
        if what.endswith("cold"):
            os.environ["NUMBA_CACHE_DIR"] = folder
        print(first_call(backward="step" in what))


main()
