"""
Denoising a signal on a graph
=============================

Sensors that stand near each other should agree, except where there is a true border between
regions. Which p removes the noise and keeps the border? :func:`plap.solve` finds the minimiser of

.. math:: \\tfrac12 \\sum_{ij} \\|(\\nabla f)([i,j])\\|^p + \\mu \\sum_i \\|f(i) - x(i)\\|^2 .
"""

import numpy as np
import plap
import torch
from sklearn.neighbors import kneighbors_graph

rng = np.random.default_rng(0)
place = rng.random((800, 2))
truth = np.where((place[:, 0] - 0.35) ** 2 + (place[:, 1] - 0.4) ** 2 < 0.08, 1.0, 0.0)
truth[place[:, 0] + place[:, 1] > 1.35] = -1.0
measured = truth + rng.normal(scale=0.5, size=truth.size)
graph = plap.Graph.from_scipy(kneighbors_graph(place, 8))

# %%
# The gradient of the paper compares f/√D of the two ends, so that a constant is smooth only on a
# regular graph. To smooth a signal in its own units, multiply by √D before and divide afterwards.

root = graph.degree.sqrt()


def smooth(p: float, mu: float) -> np.ndarray:
    """The minimiser for the measured signal."""
    x = (torch.from_numpy(measured) * root)[:, None]
    solution, info = plap.solve(x, graph, p=p, mu=mu)
    assert info.converged
    return (solution[:, 0] / root).numpy()


mus = np.geomspace(0.003, 3, 13)
error = {p: [np.sqrt(np.mean((smooth(p, mu) - truth) ** 2)) for mu in mus] for p in (1.0, 1.5, 2.0)}
best = {p: mus[int(np.argmin(values))] for p, values in error.items()}

# %%

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained", width_ratios=(1, 1, 1, 1.25))
for axis, (title, signal) in zip(
    axes,
    {"measured": measured, "p = 2": smooth(2.0, best[2.0]), "p = 1": smooth(1.0, best[1.0])}.items(),
    strict=False,
):
    axis.scatter(*place.T, c=signal, s=11, vmin=-1.5, vmax=1.5, cmap="coolwarm")
    off = np.sqrt(np.mean((signal - truth) ** 2))
    axis.set(title=f"{title}\nerror {off:.2f}", aspect="equal")
    axis.axis("off")
for p, values in error.items():
    axes[3].plot(mus, values, label=f"p = {p:g}")
axes[3].set(xscale="log", xlabel="μ", title="error against the truth")
axes[3].legend()
plt.show()

# sphinx_gallery_start_ignore
assert min(error[1.0]) < min(error[1.5]) < min(error[2.0]) < 0.5
# sphinx_gallery_end_ignore
# %%
# For each p the best μ was taken (with the truth at hand, which you will not have). p = 2 blurs the
# border, because it punishes one large jump more than many small ones; p = 1, total variation,
# keeps it.
