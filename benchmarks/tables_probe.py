"""In a process of its own: one fit on tables, phase by phase, or reading one large table of edges.

Arguments are ``fit FOLDER``, ``with nodes FOLDER`` or ``edges alone FOLDER``.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

_BEGIN = time.perf_counter()
TRAINED = ("pGNN", "MLP")
"""Methods whose epochs are training; all other phases are around it."""


class Phases:
    """Seconds and processor seconds from one mark to the next."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._name, self._wall, self._work = "importing", _BEGIN, 0.0

    def begin(self, name: str) -> None:
        """End the phase that is on, and begin the next."""
        wall, work = time.perf_counter(), time.process_time()
        row = {"phase": self._name, "seconds": wall - self._wall, "processor_seconds": work - self._work}
        self.rows.append(row | {"peak_gib": peak()})
        self._name, self._wall, self._work = name, wall, work


def peak() -> float:
    """Resident memory of this process at most so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def fit(folder: Path) -> dict[str, Any]:
    """A fit of one epoch and one member, so that nearly everything is what surrounds training."""
    phases = Phases()
    import plap  # noqa: PLC0415  (importing is a phase)
    from plap.data.resolve import open_graph  # noqa: PLC0415
    from plap.data.tables.options import TableOptions  # noqa: PLC0415
    from plap.fitting import choose_split  # noqa: PLC0415

    phases.begin("reading tables")
    data = open_graph(str(folder), TableOptions(encode=False))
    phases.begin("splitting")
    split = choose_split(data)
    phases.begin("columns to features")
    result = plap.fit(data, split, search=False, seeds=1, max_epochs=1, announce=phases.begin)
    phases.begin("edge trust")
    result.edge_trust  # noqa: B018  (cached for the page)
    phases.begin("content of the page")
    result.content  # noqa: B018
    phases.begin("page")
    result.page  # noqa: B018
    phases.begin("writing")
    result.save(folder / "out")
    phases.begin("end")
    around = [row for row in phases.rows if row["phase"] not in TRAINED]
    return {
        "phases": phases.rows,
        "nodes": data.graph.num_nodes,
        "edges": data.graph.num_edges,
        "features": result.data.x.shape[1],
        "seconds": sum(row["seconds"] for row in phases.rows),
        "seconds_around_training": sum(row["seconds"] for row in around),
        "processor_seconds_around_training": sum(row["processor_seconds"] for row in around),
        "peak_gib": peak(),
    }


def read(folder: Path, *, nodes: bool) -> dict[str, Any]:
    """Reading a table of edges with text ids, with a table of nodes or without one."""
    from plap.data import load_tables  # noqa: PLC0415

    begin = time.perf_counter()
    data = load_tables(folder / "edges.parquet", folder / "nodes.parquet" if nodes else None)
    return {
        "kind": "with a table of nodes" if nodes else "edges alone",
        "rows": data.graph.num_edges,
        "nodes": data.graph.num_nodes,
        "seconds": time.perf_counter() - begin,
        "processor_seconds": time.process_time(),
        "peak_gib": peak(),
    }


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    print(json.dumps(fit(folder) if kind == "fit" else read(folder, nodes=kind == "with nodes")))


main()
