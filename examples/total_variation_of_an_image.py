"""
An image by total variation
===========================

An image is a graph: pixels, joined with the pixels beside them. With p = 1 :func:`plap.solve` is
total variation denoising, on the colours together, so that an edge of the picture is an edge in all
three channels.
"""

import numpy as np
import plap
import torch
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import grid_to_graph

photo = load_sample_image("flower.jpg")[60:380:3, 180:540:3] / 255.0
rows, columns, _ = photo.shape
rng = np.random.default_rng(0)
noisy = photo + rng.normal(scale=0.15, size=photo.shape)
grid = grid_to_graph(rows, columns).tolil()
grid.setdiag(0)
graph = plap.Graph.from_scipy(grid.tocsr())
print(graph)

# %%
# Pixels at the border have fewer neighbours; multiplying by √D first and dividing afterwards makes
# the smoothing treat all of them alike (see :doc:`denoising_a_signal`).

root = graph.degree.sqrt()[:, None]


def smooth(p: float, mu: float) -> np.ndarray:
    """The picture that minimises the energy."""
    x = torch.from_numpy(noisy.reshape(-1, 3)) * root
    solution, _ = plap.solve(x, graph, p=p, mu=mu, tol=1e-4)
    return (solution / root).numpy().reshape(photo.shape)


def decibel(image: np.ndarray) -> float:
    """Peak signal-to-noise ratio."""
    return -10 * np.log10(np.mean((image.clip(0, 1) - photo) ** 2))


trials = {
    p: {mu: smooth(p, mu) for mu in mus} for p, mus in {2.0: (0.2, 0.4, 0.8), 1.0: (0.6, 1.0, 1.6)}.items()
}
best = {p: max(images.values(), key=decibel) for p, images in trials.items()}

# %%

import matplotlib.pyplot as plt

shown = {"photo": photo, "with noise": noisy, "p = 2": best[2.0], "p = 1 (total variation)": best[1.0]}
figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
for axis, (title, image) in zip(axes, shown.items(), strict=True):
    axis.imshow(image.clip(0, 1))
    axis.set_title(title if image is photo else f"{title}\n{decibel(image):.1f} dB")
    axis.axis("off")
plt.show()

# sphinx_gallery_start_ignore
assert decibel(best[1.0]) > decibel(best[2.0]) > decibel(noisy) + 2
# sphinx_gallery_end_ignore
# %%
# The best of three μ for each p. p = 2 trades noise for blur; p = 1 removes noise from areas and
# leaves their borders.
