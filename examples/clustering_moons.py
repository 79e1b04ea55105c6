"""
Spectral clustering on moons
============================

Two moons, some noise, no labels. Spectral clustering cuts a graph by the second eigenvector of its
Laplacian; the p-Laplacian's second eigenvector makes a better cut as p falls towards 1, where its
eigenvalue becomes the Cheeger cut itself.
"""

import numpy as np
import plap
from sklearn.datasets import make_moons
from sklearn.neighbors import kneighbors_graph

points, moon = make_moons(200, noise=0.15, random_state=3)
near = kneighbors_graph(points, 8, mode="distance")
near.data = np.exp(-((near.data / np.median(near.data)) ** 2))
graph = plap.Graph.from_scipy(near)

# %%
# The same graph for three p. ``cuts`` says how good the cut is: smaller is better.

found = {p: plap.spectral.spectral_clustering(graph, 2, p=p) for p in (2.0, 1.5, 1.2)}


def right(labels: np.ndarray) -> float:
    """Share of the points on the right side, whichever cluster is called 0."""
    same = (labels == moon).mean()
    return max(same, 1 - same)


for p, clusters in found.items():
    print(f"p = {p}: Cheeger cut {clusters.cuts[0]:.4f}, {right(clusters.labels):.1%} on the right side")

# %%

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3), layout="constrained", sharex=True, sharey=True)
for axis, (p, clusters) in zip(axes, found.items(), strict=True):
    for label, marker in ((0, "o"), (1, "^")):
        axis.scatter(*points[clusters.labels == label].T, s=18, marker=marker)
    axis.set_title(f"p = {p:g}\ncut {clusters.cuts[0]:.4f}, {right(clusters.labels):.1%} right")
    axis.set(xticks=[], yticks=[], aspect="equal")
plt.show()

# sphinx_gallery_start_ignore
assert found[1.5].cuts[0] < 0.6 * found[2.0].cuts[0] and right(found[1.5].labels) > 0.95
# sphinx_gallery_end_ignore
# %%
# :doc:`/theory` says what is proved about these eigenvectors and what is not.
