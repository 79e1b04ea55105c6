"""
What do p, μ and K do?
======================

Three dials. **p** (or another penalty) says how much an edge counts by its length, **μ** how strongly a
node holds on to its own features, **K** how many steps are taken. This example draws what each of them
does; :doc:`/cheat-sheet` has the words.
"""

import numpy as np
import plap
import torch

# %%
# A path of 60 nodes with a step in the middle and noise, and what :func:`plap.propagate` makes of it.

rng = np.random.default_rng(0)
path = plap.Graph.from_edges([(k, k + 1) for k in range(59)])
step = torch.from_numpy(np.repeat([0.0, 2.0], 30) + rng.normal(scale=0.3, size=60))[:, None]
results = {
    "p = 2": plap.propagate(step, path, p=2, mu=0.1, K=60),
    "p = 1": plap.propagate(step, path, p=1, mu=0.3, K=300),
    "MCP": plap.propagate(step, path, penalty=plap.penalties.MCP(0.8), mu=0.3, K=300),
}

# %%
# For p = 2 the steps are a linear filter, whose response is a formula. Low frequencies are what neighbours
# share, high ones where they differ.

import matplotlib.pyplot as plt

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
length = torch.linspace(0.02, 4, 400, dtype=torch.float64)
for p in (1.0, 1.5, 2.0, 2.5):
    left.plot(length, plap.penalties.Power(p).psi(length**2), label=f"p = {p:g}")
for penalty in (plap.penalties.MCP(3.0), plap.penalties.Huber(2.0), plap.penalties.Welsch(1.5)):
    left.plot(length, penalty.psi(length**2), linestyle="--", label=str(penalty))
left.set(xlabel="length of an edge", title="how much an edge counts", ylim=(0, 4))
left.legend(fontsize=9)

middle.plot(step, ".", color="0.6", label="input")
for name, result in results.items():
    middle.plot(result, label=name)
middle.set(xlabel="node of the path", title="a noisy step after many steps")
middle.legend(fontsize=9)

frequency = np.linspace(0, 2, 200)
for K, mu, style in [(1, 0.1, "-"), (4, 0.1, "-"), (30, 0.1, "-"), (4, 1.0, "--")]:
    gain = plap.spectral.linear_gain(frequency, mu=mu, K=K)
    right.plot(frequency, np.abs(gain), style, label=f"K = {K}, μ = {mu:g}")
right.set(xlabel="frequency (0: neighbours agree, 2: they differ)", title="what K steps leave, p = 2")
right.legend(fontsize=9)
plt.show()

# sphinx_gallery_start_ignore
few, many = (abs(plap.spectral.linear_gain(1.8, mu=0.1, K=K)) for K in (4, 30))
assert few > 3 * many
jump = {name: float(result[30] - result[29]) for name, result in results.items()}
assert 2 * jump["p = 2"] < min(jump["p = 1"], jump["MCP"]), jump
# sphinx_gallery_end_ignore
# %%
# Left: below p = 2 long edges count for less, above it for more; MCP leaves out edges longer than γ
# altogether. Middle: p = 2 blurs the step, p = 1 and MCP keep it. Right: a few steps keep both ends of the
# spectrum, many keep only the low end, and a large μ keeps more of everything.
