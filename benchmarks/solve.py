"""`plap bench solve`: how many walks over the edges each method takes to the minimiser of Eq. 8."""

from __future__ import annotations

import json
import statistics
from typing import Any

import networkx
import numpy as np
import torch
from torch import Tensor

import plap
from graphs import power_law
from plap.penalties import Power
from plap.solving.problem import Problem
from plap.solving.solver import METHODS
from timing import interleaved

TOL = 1e-6
CHANNELS = 16
CAP = 3000
"""Steps after which a method has failed."""

NOTE: dict[float, int] = {1.0: 51, 1.2: 36, 1.5: 27, 2.0: 18, 2.5: 21, 3.0: 22, 4.0: 24}
"""Edge passes of L-BFGS by p, as the prototype that this solver grew from took them (numerics §5)."""

MU = (0.01, 0.1, 1.0)
COVERED_P = (1.0, 1.1, 1.2, 1.5, 1.8, 2.0, 2.2, 2.5, 3.0, 3.5, 4.0)
COVERED_MU = (*MU, 10.0)

Problems = dict[str, tuple[plap.Graph, Tensor]]


def families(seed: int = 0) -> Problems:
    """A block model, a random graph with weights and a grid, with standard normal features."""
    rng = np.random.default_rng(seed)
    random = networkx.gnp_random_graph(300, 0.03, seed=seed)
    weights = {edge: rng.uniform(0.2, 2.0) for edge in random.edges}
    networkx.set_edge_attributes(random, weights, "weight")
    graphs = {
        "csbm": plap.data.csbm(phi=0.5, n=600, f=CHANNELS, seed=seed).graph,
        "random": plap.Graph.from_networkx(random),
        "grid": plap.Graph.from_networkx(networkx.grid_2d_graph(16, 16)),
    }
    return {name: (graph, _features(graph, seed + 1)) for name, graph in graphs.items()}


def _features(graph: plap.Graph, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(graph.num_nodes, CHANNELS, generator=generator, dtype=torch.float64)


def counts(problems: Problems, method: str, p: float, mus: tuple[float, ...]) -> list[plap.SolveInfo]:
    return [
        plap.solve(x, graph, p, mu, TOL, method=method, max_iter=CAP)[1]  # type: ignore[arg-type]
        for graph, x in problems.values()
        for mu in mus
    ]


def passes() -> dict[str, list[dict[str, Any]]]:
    """By p and method: the geometric mean of the edge passes over graphs and mu, and how many failed."""
    problems = families()
    means, failures = [], []
    for p, note in NOTE.items():
        infos = {method: counts(problems, method, p, MU) for method in METHODS}
        mean = {name: statistics.geometric_mean(i.edge_passes for i in each) for name, each in infos.items()}
        means.append({"p": p, "lbfgs_note": note, "lbfgs_over_note": mean["lbfgs"] / note, **mean})
        failures.append(
            {"p": p, **{name: sum(not i.converged for i in each) for name, each in infos.items()}}
        )
    return {"edge_passes": means, f"failed_of_{len(MU) * len(problems)}": failures}


def coverage() -> list[dict[str, Any]]:
    """Every method on every p, mu and graph: how often it failed, and the most passes it took."""
    problems = families(seed=1)
    rows = []
    for method in METHODS:
        infos = [info for p in COVERED_P for info in counts(problems, method, p, COVERED_MU)]
        rows.append(
            {
                "method": method,
                "solves": len(infos),
                "failed": sum(not info.converged for info in infos),
                "most_passes": max(info.edge_passes for info in infos),
            }
        )
    return rows


def derivatives() -> list[dict[str, Any]]:
    """Edge passes of the solution and of its pull-back to x, p and mu, on the block model."""
    graph, features = families()["csbm"]
    rows = []
    for p in NOTE:
        for mu in MU:
            inputs = features.clone(), torch.tensor(p).double(), torch.tensor(mu).double()
            x, learnable_p, learnable_mu = (value.requires_grad_() for value in inputs)
            y, info = plap.solve(x, graph, learnable_p, learnable_mu, TOL)
            (y * _features(graph, 7)).sum().backward()
            total = y.grad_fn.at.problem.edge_passes  # type: ignore[union-attr]
            rows.append({"p": p, "mu": mu, "forward": info.edge_passes, "backward": total - info.edge_passes})
    return rows


def edge_pass(rounds: int = 7) -> dict[str, float]:
    """Time of a gradient, and of a product with the Hessian, in steps of ``plap.propagate`` in float64."""
    graph = power_law(13_752, 490_000)
    x = _features(graph, 0) / 10
    problem = Problem(x, graph, Power(1.5), 0.1, 1e-3)
    times = interleaved(
        {
            "gradient": lambda: problem.at(x),
            "hessian": lambda: problem.hessian_product(x, x),
            "step": lambda: plap.propagate(x, graph, 1.5, 0.1, 1, eps=1e-3),
        },
        rounds,
    )
    return {f"{name}_over_step": times[name] / times["step"] for name in ("gradient", "hessian")}


def run() -> dict[str, Any]:
    """Every section as plain numbers."""
    return {
        "torch": torch.__version__,
        **passes(),
        "coverage": coverage(),
        "derivatives": derivatives(),
        "edge_pass": edge_pass(),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
