"""What every process of a test runs: training in pieces on a small graph, its history as JSON at the end."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from plap.data import csbm, split
from plap.training import Progress, RunConfig, RunResult
from plap.training.pieces import Checkpoint, EvaluateOn, Pieces, join_ranks, train_in_pieces

CONFIG = RunConfig(p=1.5, K=2, hidden=8, dropout=0.5, max_epochs=8, seed=3)


def pieces() -> Pieces:
    """Seven parts in steps of three pieces: the last step has one, so that two of three ranks have none."""
    data = csbm(phi=0.5, n=120, f=10, seed=5)
    return Pieces.of_parts(data.graph, data.x, data.y, split(data), 7, pieces_per_step=3, cache=False)


def history(result: RunResult) -> dict[str, list[float]]:
    return {name: getattr(result.history, name).tolist() for name in ("train_loss", "val_loss", "val_score")}


def main(out: Path, evaluation: EvaluateOn, killed: str) -> None:
    def kill_once(state: Progress) -> None:
        if killed == os.environ["RANK"] and state.epoch == 5 and not (out / "killed").exists():
            (out / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    with join_ranks("cpu", timedelta(minutes=10)) as ranks:
        checkpoint = Checkpoint(out / "run.checkpoint", every=2)
        result = train_in_pieces(
            pieces(),
            CONFIG,
            ranks=ranks,
            evaluation=evaluation,
            checkpoint=checkpoint,
            progress=kill_once,
        )
        content = {"history": history(result), "logits": result.logits.tolist(), "size": ranks.size}
        restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT")
        (out / f"rank{ranks.rank}.json").write_text(json.dumps(content | {"restarts": restarts}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])  # type: ignore[arg-type]
