"""A training epoch (one training step and one evaluation) of PGNN, the textbook PGNN and PyG's GCN.

PGNN twice: the module in a loop of one's own, with PyTorch's Adam, and a run of ``plap.training.train_runs``.
Candidates take turns of several epochs in a row, as training has them: the first one after another program's
turn finds nothing of its own in the cache.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout, relu

import plap
import plap.nn
import textbook
from plap.data import GraphData, load
from plap.data.tasks import training_task
from plap.training import RunConfig
from plap.training.batch import Batch
from plap.training.inputs import make_inputs
from timing import interleaved, threads

SETS = ("texas", "cora", "citeseer", "pubmed", "computers", "cs", "physics", "squirrel")


class TextbookPGNN(torch.nn.Module):
    """PGNN as a first script would have it: dense features, gather-scatter propagation."""

    def __init__(self, in_channels: int, hidden: int, out: int) -> None:
        super().__init__()
        self.lin1, self.lin2 = torch.nn.Linear(in_channels, hidden), torch.nn.Linear(hidden, out)

    def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        hidden = dropout(relu(self.lin1(x)), 0.5, self.training)
        result: Tensor = self.lin2(textbook.propagate(hidden, edge_index, weight, 1.5, 0.1, 4))
        return result


def epoch_of(model: torch.nn.Module, y: Tensor, *inputs: Any) -> Any:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    labelled = torch.arange(0, y.shape[0], 40)

    def epoch() -> None:
        model.train()
        optimizer.zero_grad()
        cross_entropy(model(*inputs)[labelled], y[labelled]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(*inputs).argmax(1)

    return epoch


def epoch_of_a_run(data: GraphData) -> Any:
    """An epoch as ``train_runs`` trains it: the same nodes are labelled, and as many are for validation."""
    train, val = torch.zeros(2, data.graph.num_nodes, dtype=torch.bool).unbind()
    train[::40], val[20::40] = True, True
    masks = SimpleNamespace(train=train, val=val)
    inputs = make_inputs(data.graph, data.x, torch.float32, adjacency=False)
    config = RunConfig(p=1.5, mu=0.1, K=4, max_epochs=10**6, patience=10**6)
    task = training_task(data.y, [masks], data.graph.num_nodes, data.num_classes, None)
    return Batch(inputs, data.y, task, [config], [masks]).train_epoch


def measure(root: str | None, rounds: int = 5) -> list[dict[str, Any]]:
    """A row a data set whose files are here."""
    rows = []
    for name in SETS:
        try:
            data = load(name, root)
        except plap.InputError as error:
            rows.append({"data": name, "skipped": str(error)})
            continue
        for count in sorted({1, torch.get_num_threads()}):
            with threads(count):
                rows.append(_row(name, data, count, rounds))
    return rows


def _row(name: str, data: Any, count: int, rounds: int) -> dict[str, Any]:
    from torch_geometric.nn import GCN  # noqa: PLC0415

    features, classes = data.x.shape[1], data.num_classes
    dense = data.x.to_dense()
    edge_index = data.graph.edge_index
    epochs = max(3, min(20, 200_000 // data.graph.num_entries))
    seconds = interleaved(
        {
            "plap": epoch_of(plap.nn.PGNN(features, 16, classes, p=1.5), data.y, data.x, data.graph),
            "run": epoch_of_a_run(data),
            "gcn": epoch_of(GCN(features, 16, 2, classes), data.y, dense, edge_index),
            "textbook": epoch_of(
                TextbookPGNN(features, 16, classes), data.y, dense, edge_index, data.graph.weight
            ),
        },
        rounds,
        calls=epochs,
    )
    return {
        "data": name,
        "threads": count,
        "epochs_in_a_row": epochs,
        "plap_ms": 1e3 * seconds["plap"],
        "run_ms": 1e3 * seconds["run"],
        "textbook_over_run": seconds["textbook"] / seconds["run"],
        "gcn_over_run": seconds["gcn"] / seconds["run"],
        "textbook_over_plap": seconds["textbook"] / seconds["plap"],
        "gcn_over_plap": seconds["gcn"] / seconds["plap"],
    }
