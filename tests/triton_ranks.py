"""What each of two processes runs: an epoch in pieces by the Triton backend, in Triton's interpreter."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from plap.data import csbm, split
from plap.kernels import registry
from plap.kernels.triton.backend import TRITON, Triton
from plap.training import RunConfig, RunResult
from plap.training.pieces import Pieces, join_ranks, train_in_pieces

CONFIG = RunConfig(p=1.5, K=1, hidden=4, dropout=0.5, max_epochs=1, seed=3)


def pieces() -> Pieces:
    """Two parts, so that each of two processes has one."""
    data = csbm(phi=0.5, n=14, f=4, d=3, seed=5)
    return Pieces.of_parts(data.graph, data.x, data.y, split(data), 2, pieces_per_step=2, cache=False)


def history(result: RunResult) -> dict[str, list[float]]:
    return {name: getattr(result.history, name).tolist() for name in ("train_loss", "val_loss")}


def main(out: Path) -> None:
    calls = []
    operators = Triton.operators

    def counted(*arguments: Any) -> Any:
        calls.append(arguments[0].shape)
        return operators.eager(*arguments)

    Triton.operators = operators._replace(eager=counted)
    registry.BACKENDS = (TRITON,)  # on a GPU it is the first that serves; on a CPU the fused one is
    with join_ranks("cpu") as ranks:
        result = train_in_pieces(pieces(), CONFIG, ranks=ranks, evaluation="whole")
        content = {"history": history(result), "logits": result.logits.tolist(), "calls": len(calls)}
        (out / f"rank{ranks.rank}.json").write_text(json.dumps(content))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
