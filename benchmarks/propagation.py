"""`plap bench propagation`: the fused operator against the textbook and against sparse products."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import plap
import textbook
from graphs import power_law
from plap.penalties import BUILT_IN, Penalty, Power
from timing import interleaved, threads

SMALL = (13_752, 490_000)
LARGE = (1_000_000, 50_000_000)
K = 4
MU = 0.1


def speed(rounds: int = 7) -> list[dict[str, Any]]:
    """Forward + backward against the textbook, forward against K sparse products, by channels, p, threads."""
    graph = power_law(*SMALL)
    rows = []
    for count in sorted({1, torch.get_num_threads()}):
        for channels in (16, 64):
            with threads(count):
                rows += [_speed_row(graph, channels, p, count, rounds) for p in (1.0, 1.3, 1.5, 2.0, 2.5)]
    return rows


def _speed_row(graph: plap.Graph, channels: int, p: float, count: int, rounds: int) -> dict[str, Any]:
    x = torch.randn(graph.num_nodes, channels, generator=torch.Generator().manual_seed(0))
    matrix = as_sparse(graph)
    edge_index = graph.edge_index
    leaf = x.clone().requires_grad_()

    def train(forward: Any) -> None:
        leaf.grad = None
        forward().sum().backward()

    both = interleaved(
        {
            "textbook": lambda: train(lambda: textbook.propagate(leaf, edge_index, graph.weight, p, MU, K)),
            "fused": lambda: train(lambda: plap.propagate(leaf, graph, p, MU, K)),
        },
        rounds=max(3, rounds // 2),
    )
    forward = interleaved(
        {"sparse": lambda: products(matrix, x, K), "fused": lambda: plap.propagate(x, graph, p, MU, K)},
        rounds=4 * rounds,
    )
    return {
        "threads": count,
        "channels": channels,
        "p": p,
        "fused_forward_ms": 1e3 * forward["fused"],
        "fused_both_ms": 1e3 * both["fused"],
        "textbook_over_fused": both["textbook"] / both["fused"],
        "fused_forward_over_sparse": forward["fused"] / forward["sparse"],
    }


def penalties(rounds: int = 15) -> list[dict[str, Any]]:
    """Every built-in penalty against Power(1.5), forward and with backward, in turn; γ = median edge norm."""
    graph = power_law(*SMALL)
    rows = []
    for channels in (16, 64):
        x = torch.randn(graph.num_nodes, channels, generator=torch.Generator().manual_seed(0))
        gamma = float(plap.gradient(x, graph).norm(dim=1).median())
        candidates = {kind.__name__: kind(1.5 if kind is Power else gamma) for kind in BUILT_IN}
        leaf = x.clone().requires_grad_()
        with threads(1):
            forward = interleaved(
                {name: partial(_forward, x, graph, penalty) for name, penalty in candidates.items()}, rounds
            )
            both = interleaved(
                {name: partial(_both, leaf, graph, penalty) for name, penalty in candidates.items()}, rounds
            )
        rows += [
            {
                "channels": channels,
                "penalty": repr(penalty),
                "forward_ms": 1e3 * forward[name],
                "both_ms": 1e3 * both[name],
                "forward_over_power": forward[name] / forward["Power"],
                "both_over_power": both[name] / both["Power"],
            }
            for name, penalty in candidates.items()
        ]
    return rows


def _forward(x: Tensor, graph: plap.Graph, penalty: Penalty) -> Tensor:
    return plap.propagate(x, graph, penalty=penalty, mu=MU, K=K)


def _both(leaf: Tensor, graph: plap.Graph, penalty: Penalty) -> None:
    leaf.grad = None
    _forward(leaf, graph, penalty).sum().backward()


def as_sparse(graph: plap.Graph) -> Tensor:
    size = (graph.num_nodes, graph.num_nodes)
    return torch.sparse_csr_tensor(graph.indptr, graph.indices, graph.weight, size, check_invariants=False)


def products(matrix: Tensor, x: Tensor, count: int) -> Tensor:
    for _ in range(count):
        x = matrix @ x
    return x


def memory() -> list[dict[str, Any]]:
    """Peak memory of forward + backward beyond what was there before, each in a process of its own."""
    rows = []
    for channels in (16, 64):
        nodes, _ = SMALL
        entries = power_law(*SMALL).num_entries
        used = {way: _in_new_process("memory_probe.py", way, str(channels)) for way in ("fused", "textbook")}
        allowed = 3 * K * nodes * channels * 4 + 32 * entries
        rows.append(
            {
                "channels": channels,
                "fused_mb": used["fused"] / 1e6,
                "textbook_mb": used["textbook"] / 1e6,
                "allowed_mb": allowed / 1e6,
            }
        )
    return rows


def start_up() -> dict[str, float]:
    """Seconds: importing plap after torch, the first training step without and with Numba's cache."""
    keys = ("import", "first_call_cold", "first_step_cold", "first_step_cached")
    return {key: _in_new_process("start_probe.py", key) for key in keys}


def _in_new_process(script: str, *arguments: str) -> float:
    command = [sys.executable, str(Path(__file__).parent / script), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def large() -> dict[str, Any]:
    """Time an entry of forward + backward on a million nodes against the small graph, and the peak memory."""
    small, big = power_law(*SMALL), power_law(*LARGE)
    per_entry = {}
    for name, graph in (("small", small), ("large", big)):
        x = torch.randn(graph.num_nodes, 16, requires_grad=True)
        times = []
        for _ in range(4):
            begin = time.perf_counter()
            plap.propagate(x, graph, 1.5, MU, K).sum().backward()
            times.append(time.perf_counter() - begin)
        per_entry[name] = sorted(times[1:])[1] / graph.num_entries / K
    return {
        "entries": big.num_entries,
        "nanoseconds_small": 1e9 * per_entry["small"],
        "nanoseconds_large": 1e9 * per_entry["large"],
        "large_over_small": per_entry["large"] / per_entry["small"],
        "peak_gb": _peak_bytes() / 1e9,
    }


def _peak_bytes() -> int:
    import resource  # noqa: PLC0415  (not on every platform)

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(*, with_large: bool, root: str | None) -> dict[str, Any]:
    """Every section as plain numbers."""
    import epochs  # noqa: PLC0415  (imports PyG)

    result: dict[str, Any] = {
        "graph": {"nodes": SMALL[0], "entries": power_law(*SMALL).num_entries, "K": K},
        "torch": torch.__version__,
        "start_up": start_up(),
        "speed": speed(),
        "penalties": penalties(),
        "memory": memory(),
        "epochs": epochs.measure(root),
    }
    if with_large:
        result["large"] = large()
    return result


if __name__ == "__main__":
    print(json.dumps(run(with_large=False, root=None), indent=1))
