"""Compile the machine code that most tests run, once, before several processes would each compile their own.

What LLVM makes of a loop may differ in the last bit with what was compiled before it in the same process.
Tests that compare results of two processes to the bit need both to load the same code from the cache.
"""

from __future__ import annotations

import torch

import plap
from plap.models import find_model, model_names
from plap.training import RunConfig, train_runs


def main() -> None:
    data = plap.data.csbm(phi=0.5, n=60, f=6, d=4.0, seed=1)
    parts = plap.data.split(data, seed=1)
    stacked = [name for name in model_names() if find_model(name).stacked is not None]
    for dtype in (torch.float32, torch.float64):
        for p in (1.0, 1.3, 1.5, 2.0, 2.5):
            x = torch.rand(60, 16, dtype=dtype).requires_grad_()
            plap.propagate(x, data.graph, p=p, mu=0.1, K=2).sum().backward()
        configs = [RunConfig(name, max_epochs=2, seed=seed) for name in stacked for seed in (0, 1)]
        train_runs(data.graph, data.x, data.y, configs, parts, dtype=dtype)


if __name__ == "__main__":
    main()
