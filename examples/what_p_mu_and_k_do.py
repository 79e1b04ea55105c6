"""
What do p, μ and K do?
======================

Three dials. **p** (or another penalty) says how much an edge counts by its length, **μ** how
strongly a node holds on to its own features, **K** how many steps are taken. This example draws
what each of them does; :doc:`/cheat-sheet` has the words.
"""

import matplotlib.pyplot as plt
import numpy as np
import plap
import torch

length = torch.linspace(0.02, 4, 400, dtype=torch.float64)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for p in (1.0, 1.5, 2.0, 2.5):
    left.plot(length, plap.penalties.Power(p).psi(length**2), label=f"p = {p:g}")
for penalty in (plap.penalties.MCP(3.0), plap.penalties.Huber(2.0), plap.penalties.Welsch(1.5)):
    left.plot(length, penalty.psi(length**2), linestyle="--", label=str(penalty))
left.set(xlabel="length of the edge, ‖∇f‖", ylabel="weight of the edge, ψ", ylim=(0, 4))
left.legend(ncols=2, loc="upper right")

# %%
# What K steps do to each frequency of a random signal on a random graph, for p = 2: a linear
# filter, whose response is a formula. Low frequencies are what neighbours share, high ones where
# they differ.

frequency = np.linspace(0, 2, 200)
for K, mu, style in [(1, 0.1, "-"), (4, 0.1, "-"), (30, 0.1, "-"), (4, 1.0, "--")]:
    gain = plap.spectral.linear_gain(frequency, mu=mu, K=K)
    right.plot(frequency, np.abs(gain), style, label=f"K = {K}, μ = {mu:g}")
right.set(xlabel="frequency λ (0: neighbours agree, 2: neighbours differ)", ylabel="amplitude that is left")
right.legend()
plt.show()

# sphinx_gallery_start_ignore
few, many = (abs(plap.spectral.linear_gain(1.8, mu=0.1, K=K)) for K in (4, 30))
assert few > 3 * many
# sphinx_gallery_end_ignore
# %%
# Left: below p = 2 long edges count for less, above it for more; MCP leaves out edges longer than γ
# altogether. Right: a few steps keep both ends of the spectrum, many keep only the low end, a large
# μ keeps everything as it was.
