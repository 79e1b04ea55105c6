"""A training epoch of deep p-Laplacian networks, with compiled loops between linear maps and without.

    python benchmarks/deep_epochs.py [--root DATASETS] [--rounds 5]

Both candidates train the same run in one process and take turns; only what stands between two linear maps
(normalisation, ReLU, dropout, residual) differs. One thread. DATASETS is a folder in the layout of
``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from plap.data import GraphData, load, split
from plap.data.tasks import training_task
from plap.nn import stacked_activation
from plap.training import RunConfig
from plap.training.batch import Batch
from plap.training.inputs import make_inputs
from timing import interleaved, threads

SETS = ("texas", "chameleon", "minesweeper")
BLOCKS: dict[str, Any] = {
    "hidden": 64, "K": 1, "mlp_layers": 1, "output": "linear", "p": 2.0, "mu": 0.01,
    "concat": True, "residual": True,
}  # fmt: skip
FORMS: dict[str, dict[str, Any]] = {
    "3 blocks, BatchNorm": {"layers": 3, "norm": "batch"},
    "9 blocks, BatchNorm": {"layers": 9, "norm": "batch"},
    "3 blocks, LayerNorm": {"layers": 3, "norm": "layer"},
    "2 layers, no norm": {"layers": 2, "norm": "none", "residual": False},
}
NEVER = 1 << 62
"""Numbers of a run that no graph has."""


def epoch_of(data: GraphData, form: dict[str, Any], least: int) -> Callable[[], object]:
    """An epoch whose compiled loops begin with so many numbers of a run."""
    parts = split(data, preset="dense", seed=0)
    inputs = make_inputs(data.graph, data.x, data.x.dtype, adjacency=False)
    config = RunConfig("deep-pgnn", **BLOCKS | form, max_epochs=10**6, patience=10**6)
    task = training_task(data.y, [parts], data.graph.num_nodes, data.num_classes, None)
    batch = Batch(inputs, data.y, task, [config], [parts])

    def epoch() -> None:
        with patch.object(stacked_activation, "_WORTH_A_CALL", least):
            batch.train_epoch()

    return epoch


def main() -> None:
    """Print a line per graph and form of network."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", default=os.environ.get("PLAP_DATA"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with threads(1):
        for name in SETS:
            data = load(name, options.root)
            for title, form in FORMS.items():
                limits = {"loops": 1, "PyTorch": NEVER, "a fit": stacked_activation._WORTH_A_CALL}
                seconds = interleaved(
                    {each: epoch_of(data, form, least) for each, least in limits.items()},
                    options.rounds,
                    calls=max(3, 10_000 // data.graph.num_nodes),
                )
                told = ", ".join(f"{each} {1e3 * value:.2f} ms" for each, value in seconds.items())
                ratio = seconds["PyTorch"] / seconds["loops"]
                print(f"{name}, {title}: {told}; PyTorch / loops {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
