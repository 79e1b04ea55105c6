"""Training on the CPU by two checkouts of plap, in processor time: is the new one slower?

    python benchmarks/checkouts.py OLD NEW [--rounds 7] [--epochs 60]

OLD and NEW are folders of checkouts. Every measurement is a process of its own with one thread; the two take
turns, so that whatever else the machine does meets both. Prints the median ratio NEW / OLD of each kind.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

PROBE = """
import json, sys, time
import plap
from plap.data import csbm, split
from plap.training import RunConfig, train_runs

assert plap.__file__.startswith(sys.argv[1]), plap.__file__
epochs = int(sys.argv[2])
data = csbm(phi=0.5, n=2500, f=500, seed=1)
part = split(data, rates=(0.4, 0.3, 0.3), seed=1)
kinds = {
    "pgnn, 16 runs": [RunConfig(p=1.5, seed=seed) for seed in range(16)],
    "pgnn, 1 run": [RunConfig(p=1.5)],
    "gcn, 16 runs": [RunConfig("gcn", seed=seed) for seed in range(16)],
    "mlp, 16 runs": [RunConfig("mlp", seed=seed) for seed in range(16)],
}
taken = {}
for name, configs in kinds.items():
    def train(count):
        chosen = [config.with_values(max_epochs=count, patience=count) for config in configs]
        begin = time.process_time()
        train_runs(data.graph, data.x, data.y, chosen, part)
        return time.process_time() - begin
    train(2)
    taken[name] = train(epochs)
print(json.dumps(taken))
"""


def measure(checkout: Path, epochs: int) -> dict[str, float]:
    """Seconds of processor time by kind of training."""
    source = checkout.resolve() / "src"
    environment = {
        **os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(source), str(epochs)], env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"training by {checkout} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(old: Path, new: Path, rounds: int, epochs: int) -> dict[str, dict[str, float]]:
    """The median ratio NEW / OLD of each kind, and the least time of both."""
    pairs = []
    for number in range(rounds):
        order = (old, new) if number % 2 == 0 else (new, old)
        taken = {checkout: measure(checkout, epochs) for checkout in order}
        pairs.append((taken[old], taken[new]))
    return {
        kind: {
            "ratio": statistics.median(after[kind] / before[kind] for before, after in pairs),
            "ratio of the least": min(after[kind] for _, after in pairs)
            / min(before[kind] for before, _ in pairs),
            "old s": min(before[kind] for before, _ in pairs),
            "new s": min(after[kind] for _, after in pairs),
        }
        for kind in pairs[0][0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    print(json.dumps(compare(options.old, options.new, options.rounds, options.epochs), indent=1))


if __name__ == "__main__":
    main()
