"""`plap bench gpu`: the Triton backend checked against the oracle, and measured, on a GPU.

Where Triton's interpreter is on, a tiny version of everything runs on the CPU: it shows that the command
works, and its times mean nothing.
"""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import gpu_oracle
import plap
import problems
import propagation
from graphs import power_law
from plap.data import csbm, split
from plap.errors import InputError
from plap.kernels import registry
from plap.kernels.backend import Backend
from plap.kernels.torch.backend import TORCH
from plap.kernels.triton.backend import INTERPRETED, TRITON
from plap.penalties import BUILT_IN, Penalty, Power
from plap.training import RunConfig, RunResult, train_runs
from plap.training.devices import choose_device
from timing import interleaved

MU = propagation.MU
COLUMNS = ("part", "case", "triton", "torch", "sparse", "cpu", "unit", "wanted")
LIMITS = {torch.float64: (1e-12, 1e-12), torch.float32: (1e-5, 1e-4)}
"""Errors of values and of gradients that are allowed; a GPU's float32 roots and logarithms are short ones."""

VAGUE = 2e-6
"""Allowed where :func:`gpu_oracle.vague`, in float64."""


@dataclass(frozen=True)
class Plan:
    """How much is done."""

    problems: tuple[str, ...]
    penalties: tuple[Penalty, ...]
    """That are compared with the oracle."""
    sizes: tuple[tuple[int, int], ...]
    """Nodes and entries of the graphs that are measured."""
    channels: tuple[int, ...]
    powers: tuple[float, ...]
    leaves: int
    """Of the star whose centre is a hub."""
    rounds: int
    nodes: int
    """Of the graph that is trained on."""
    runs: int
    """That are trained together."""
    epochs: int
    K: int


WHOLE = Plan(
    tuple(problems.PROBLEMS), gpu_oracle.PENALTIES, (propagation.SMALL,), (16, 64),
    (1.0, 1.3, 1.5, 2.0, 2.5), 100_000, 15, 2500, 32, 30, propagation.K,
)  # fmt: skip
TINY = Plan(("fixture",), (Power(1.5), *gpu_oracle.PENALTIES[6:]), ((4, 8),), (4,), (1.5,), 3, 1, 6, 2, 1, 1)
"""For the interpreter, which takes some 20 ms per program."""


def run(*, device: str = "cuda", large: bool = False) -> dict[str, Any]:
    """Every row of the table, and what it was measured on; `verified` is False if a row is beyond its limit.

    Raises InputError where there is no device that Triton serves.
    """
    place = _place(device)
    plan = TINY if place.type == "cpu" else WHOLE
    rows = [*verification(plan, place), *hub(plan, place)]
    for size in (*plan.sizes, *([propagation.LARGE] if large else [])):
        rows += speed(plan, size, (16,) if size == propagation.LARGE else plan.channels, place)
    rows += training(plan, place)
    verified = all(row["triton"] <= row["wanted"] for row in rows if "wanted" in row)
    return {"machine": machine(place), "verified": verified, "rows": rows}


def _place(device: str) -> torch.device:
    """The device that is measured: the CPU if the interpreter runs the kernels."""
    if TRITON.capabilities.missing is not None:
        raise InputError("plap bench gpu needs the package triton, which comes with plap's extra 'gpu'")
    if INTERPRETED:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise InputError(
            "plap bench gpu needs a CUDA or ROCm device, and PyTorch sees none; "
            "with TRITON_INTERPRET=1 a tiny version runs on the CPU"
        )
    place = choose_device(device)
    if place.type != "cuda":
        raise InputError(f"plap bench gpu needs a CUDA or ROCm device, not {device!r}")
    return place


def machine(device: torch.device) -> dict[str, str]:
    """What the numbers belong to."""
    versions = {name: importlib.metadata.version(name) for name in ("torch", "triton")}
    known = {
        "plap": plap.__version__, "python": platform.python_version(), **versions,
        "cuda": str(torch.version.cuda), "hip": str(torch.version.hip),
    }  # fmt: skip
    if device.type != "cuda":
        return {"device": "none: Triton's interpreter on the CPU, a tiny version", **known}
    found = torch.cuda.get_device_properties(device)
    return {
        "device": found.name,
        "compute capability": f"{found.major}.{found.minor}",
        "multiprocessors": str(found.multi_processor_count),
        "memory": f"{found.total_memory / 1e9:.1f} GB",
        "driver": driver(),
        **known,
    }


def driver() -> str:
    """The version of the GPU's driver, as its own tools tell it."""
    for command in (
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        ["rocm-smi", "--showdriverversion", "--csv"],
    ):
        try:
            said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        if said.strip():
            return said.strip().splitlines()[-1]
    return "unknown"


def verification(plan: Plan, device: torch.device) -> Iterator[dict[str, Any]]:
    """The largest error over the problem graphs, for every penalty: values and gradients, both types."""
    for penalty in plan.penalties:
        rough = [name for name in plan.problems if gpu_oracle.vague(name, penalty)]
        for dtype, (of_values, of_slopes) in LIMITS.items():
            found = {
                backend.name: {
                    name: gpu_oracle.errors(backend, name, penalty, device, dtype, plan.K)
                    for name in plan.problems
                }
                for backend in (TRITON, TORCH)
            }
            # rows that are equal in float64 need not be in float32
            unclear = rough if dtype == torch.float64 else list(problems.DEGENERATE)
            clear = [name for name in plan.problems if name not in unclear]
            what = f"{penalty!r}, {str(dtype).split('.')[1]}"
            yield _errors_row(f"{what} values", found, plan.problems, 0, of_values)
            yield _errors_row(f"{what} gradients", found, clear, 1, of_slopes)
            if rough and dtype == torch.float64:
                yield _errors_row(f"{what} gradients, equal neighbours", found, rough, 1, VAGUE)


def _errors_row(
    case: str, found: dict[str, dict[str, gpu_oracle.Errors]], names: Sequence[str], part: int, wanted: float
) -> dict[str, Any]:
    worst = {backend: max(errors[name][part] for name in names) for backend, errors in found.items()}
    return {"part": "oracle", "case": case, **worst, "unit": "largest error", "wanted": wanted}


def hub(plan: Plan, device: torch.device) -> list[dict[str, Any]]:
    """A row with very many neighbours: against the plain PyTorch backend, and against itself."""
    problem = problems.Problem(problems.star(plan.leaves), problems.features(plan.leaves + 1, 4))
    once, again, expected = (
        gpu_oracle.outcome(backend, problem, Power(1.5), 1, device, torch.float64)
        for backend in (TRITON, TRITON, TORCH)
    )
    star = f"star of {plan.leaves} leaves, float64"
    rows = ((once, expected, f"{star}, against torch", 1e-10), (once, again, f"{star}, a second time", 0.0))
    return [
        {
            "part": "hub",
            "case": case,
            "triton": max(gpu_oracle.apart(one, other) for one, other in zip(got, wanted, strict=True)),
            "unit": "largest difference",
            "wanted": limit,
        }
        for got, wanted, case, limit in rows
    ]


def speed(
    plan: Plan, size: tuple[int, int], channels: Sequence[int], device: torch.device
) -> Iterator[dict[str, Any]]:
    """Milliseconds and megabytes of propagation by either backend, beside K sparse products."""
    graph = power_law(*size).to(device)
    matrix = propagation.as_sparse(graph)
    for width in channels:
        x = torch.randn(graph.num_nodes, width, generator=torch.Generator().manual_seed(0)).to(device)
        gamma = float(plap.gradient(x, graph).norm(dim=1).median())
        penalties = [Power(p) for p in plan.powers] + [kind(gamma) for kind in BUILT_IN if kind is not Power]
        if device.type == "cpu":
            penalties = penalties[:2]
        where = f"{graph.num_nodes} nodes, {graph.num_entries} entries, C = {width}"
        for penalty in penalties:
            yield from _speed_rows(x, graph, matrix, penalty, plan, f"{where}, {penalty!r}")


def _speed_rows(
    x: Tensor, graph: plap.Graph, matrix: Tensor, penalty: Penalty, plan: Plan, case: str
) -> Iterator[dict[str, Any]]:
    leaf = x.clone().requires_grad_()

    def forward(backend: Backend, start: Tensor = x) -> Tensor:
        return plap.propagate(start, graph, penalty=penalty, mu=MU, K=plan.K, backend=backend)

    def both(backend: Backend) -> None:
        leaf.grad = None
        forward(backend, leaf).sum().backward()

    # the gradient of a product by a symmetric matrix is another one
    ways: dict[str, dict[str, Callable[[], object]]] = {
        "forward": {
            "triton": partial(forward, TRITON),
            "torch": partial(forward, TORCH),
            "sparse": partial(propagation.products, matrix, x, plan.K),
        },
        "forward + backward": {
            "triton": partial(both, TRITON),
            "torch": partial(both, TORCH),
            "sparse": partial(propagation.products, matrix, x, 2 * plan.K),
        },
    }
    for name, candidates in ways.items():
        seconds = interleaved({key: _waited(call, x.device) for key, call in candidates.items()}, plan.rounds)
        times = {key: 1e3 * value for key, value in seconds.items()}
        yield {"part": name, "case": case, **times, "unit": "ms"}
    for name, candidates in ways.items():
        peaks = {key: peak_bytes(call, x.device) for key, call in candidates.items()}
        known = {key: value / 1e6 for key, value in peaks.items() if value is not None}
        yield {"part": f"peak memory, {name}", "case": case, **known, "unit": "MB"}


def _waited(call: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """The call until the device is done."""

    def wait() -> None:
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return wait


def peak_bytes(call: Callable[[], object], device: torch.device) -> int | None:
    """Bytes that a call takes on a GPU beyond what is there; None on the CPU, which does not count them."""
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    call()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def training(plan: Plan, device: torch.device) -> Iterator[dict[str, Any]]:
    """An epoch of pGNN, stacked and single, and how far a run's history is from the CPU's."""
    data = csbm(phi=0.5, n=plan.nodes, f=min(500, plan.nodes), d=3, seed=1)
    parts = split(data, rates=(0.4, 0.3, 0.3), seed=1)

    def train(count: int, backend: Backend | None, epochs: int = plan.epochs) -> list[RunResult]:
        where = "cpu" if backend is None else device
        configs = [
            RunConfig(p=1.5, K=plan.K, seed=seed, max_epochs=epochs, patience=epochs) for seed in range(count)
        ]
        with served_by(backend):
            return train_runs(data.graph, data.x, data.y, configs, parts, device=where)

    ways: dict[str, Backend | None] = {"triton": TRITON, "torch": TORCH, "cpu": None}
    for count, what in ((plan.runs, f"{plan.runs} runs at a time"), (1, "a single run")):
        times, results = {}, {}
        for name, backend in ways.items():
            if device.type == "cuda":
                train(count, backend, 1)  # compiles
            results[name] = train(count, backend)
            times[name] = 1e3 * sum(run.seconds for run in results[name]) / count / plan.epochs
        case = f"pGNN, {plan.nodes} nodes, {data.graph.num_entries} entries, {what}"
        yield {"part": "training epoch", "case": case, **times, "unit": "ms per run"}
        apart = {name: _histories_apart(results[name], results["cpu"]) for name in ("triton", "torch")}
        case = f"losses of {plan.epochs} epochs against the CPU, {what}"
        yield {"part": "history", "case": case, **apart, "unit": "largest difference", "wanted": 1e-3}


def _histories_apart(results: list[RunResult], expected: list[RunResult]) -> float:
    return max(
        gpu_oracle.apart(getattr(got.history, part), getattr(wanted.history, part))
        for got, wanted in zip(results, expected, strict=True)
        for part in ("train_loss", "val_loss")
    )


@contextmanager
def served_by(backend: Backend | None) -> Iterator[None]:
    """Training by this backend alone; None: by the one that is chosen otherwise."""
    before = registry.BACKENDS
    registry.BACKENDS = before if backend is None else (backend,)
    try:
        yield
    finally:
        registry.BACKENDS = before


def markdown(result: dict[str, Any]) -> str:
    """One table, to be pasted into an issue."""
    about = "; ".join(f"{name}: {value}" for name, value in result["machine"].items())
    verdict = "every row is within its limit" if result["verified"] else "**a row is beyond its limit**"
    columns = [name for name in COLUMNS if any(name in row for row in result["rows"])]
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(_cell(row.get(name)) for name in columns) for row in result["rows"]]
    return f"{about}; {verdict}\n\n" + "\n".join(f"| {line} |" for line in lines)


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
