"""A table that trains in seconds, and an executor that trains in this very process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from plap.errors import InputError
from plap.experiments.execution import Event, JobCompleted, JobFailed, RunFinished, execute
from plap.experiments.runs import Job, Record
from plap.experiments.table_result import TableResult

TINY = """
title = "Two small random graphs"
datasets = ["csbm:phi=0.8,n=60,f=8", "csbm:phi=-0.8,n=60,f=8"]
models = ["mlp", "two_hop.py"]
split = "dense"
runs = 3
"""

TWO_HOP = """
from torch import nn
from torch_geometric.nn import SGConv

FIXED = {"max_epochs": 15, "hidden": 4}
GRID = {"lr": [0.01, 0.1], "dropout": [0.0]}

class TwoHop(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.lin = nn.Linear(inputs, hidden)
        self.conv = SGConv(hidden, outputs, K=2)

    def forward(self, x, edge_index, edge_weight=None):
        return self.conv(self.lin(x).relu(), edge_index, edge_weight)

def build(config, in_channels, out_channels):
    return TwoHop(in_channels, config.hidden, out_channels)
"""


def write_tiny_table(folder: Path, text: str = TINY) -> Path:
    """The table and the model that it names, in ``folder``."""
    (folder / "two_hop.py").write_text(TWO_HOP)
    path = folder / "tiny.toml"
    path.write_text(text)
    return path


class ThisProcess:
    """Trains a job when the next is asked for; ``jobs`` keeps what was trained."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        while (job := next_job()) is not None:
            self.jobs.append(job)
            records: list[Record] = []
            try:
                execute(job, records.append)
            except InputError as error:
                yield JobFailed(job, str(error))
                continue
            yield from (RunFinished(job, record) for record in records)
            yield JobCompleted(job)


def means(result: TableResult) -> dict[tuple[str, str], float | None]:
    return {(cell.model, cell.dataset): cell.mean for cell in result.cells}


def equal_records(one: Iterable[Record], other: Iterable[Record]) -> bool:
    """Whether two stores say the same of every run, times aside."""
    return _timeless(one) == _timeless(other)


def _timeless(records: Iterable[Record]) -> list[tuple[object, ...]]:
    return sorted(
        (
            record.run.key, record.split_digest, record.data_digest, record.metric, repr(record.test_score),
            repr(record.val_score), repr(record.val_loss), record.best_epoch, record.epochs, record.finite,
            record.history, record.versions,
        )
        for record in records
    )  # fmt: skip
