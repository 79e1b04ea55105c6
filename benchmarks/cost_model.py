"""What training in pieces costs, by counting what the kernels read and compute; measures nothing.

``python benchmarks/cost_model.py`` prints what docs/scale.md says of ogbn-papers100M.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import plap

REAL = 4
"""Bytes of a float32."""


@dataclass(frozen=True)
class Job:
    """A graph and a pGNN."""

    nodes: int
    entries: int
    """Two an edge."""
    features: int
    channels: int
    classes: int
    K: int

    @property
    def index(self) -> int:
        """Bytes of an index: 32 bits do for 2³¹ − 1 entries."""
        return 4 if self.entries < 2**31 else 8


PAPERS = Job(nodes=111_059_956, entries=2 * 1_615_685_872, features=128, channels=64, classes=172, K=4)
"""ogbn-papers100M as its authors describe it, every citation in both directions."""


def entry_bytes(job: Job) -> int:
    """Read a stored entry and step, forward and backward, if no neighbour's row is in the cache.

    Forward: the neighbour's row Y and |Y|²; backward: its [Y | Z], |Y|² and u. Both read index and weight.
    """
    forward = job.channels * REAL + REAL
    backward = 2 * job.channels * REAL + 2 * REAL
    return forward + backward + 2 * (job.index + REAL)


def entry_flops(job: Job) -> int:
    """Additions and multiplications a stored entry and step that grow with the channels, for p ≠ 2.

    Forward: a distance (3 a channel) and a sum (2); backward: two inner products (6) and a sum (5).
    """
    return (3 + 2 + 6 + 5) * job.channels


def predict(job: Job, pieces: int) -> dict[str, float]:
    """Gigabytes and teraflops of an epoch in so many equal pieces, as if no edge were cut."""
    giga, tera = 1e9, 1e12
    part = plap.memory_needed(job.nodes // pieces, job.entries // pieces, job.channels, job.K)
    whole = plap.memory_needed(job.nodes, job.entries, job.channels, job.K)
    weights = job.channels * (job.features + job.classes) + job.channels + job.classes
    return {
        "bytes_an_entry_and_step": entry_bytes(job),
        "flops_an_entry_and_step": entry_flops(job),
        "graph_gb": (job.entries * (job.index + REAL) + job.nodes * (job.index + 8)) / giga,
        "features_gb": job.nodes * job.features * REAL / giga,
        "whole_step_gb": (whole.ends + whole.usual) / giga,
        "piece_step_gb": (part.ends + part.usual) / giga,
        "read_an_epoch_tb": job.K * job.entries * entry_bytes(job) / tera,
        "teraflops_an_epoch": job.K * job.entries * entry_flops(job) / tera,
        "seconds_at_100_gb_a_second": job.K * job.entries * entry_bytes(job) / 100e9,
        "gradient_kb": weights * REAL / 1e3,
        "logits_gb": job.nodes * job.classes * REAL / giga,
    }


def run(pieces: int = 250) -> dict[str, object]:
    """The prediction for ogbn-papers100M."""
    return {"papers100M": [{"pieces": pieces, **predict(PAPERS, pieces)}]}


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
