"""
Labels with 1 % known
=====================

Labels cost money, features rarely do. How far do twenty labelled images of handwritten digits go,
one in ninety? We join each of scikit-learn's 1,797 small images with its nearest neighbours and let
the labels travel along the edges: by :class:`plap.PLaplacianLabelPropagation`, which needs no
training, and by :class:`plap.nn.PGNN`, which learns from the pixels too.
"""

import numpy as np
import plap
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import kneighbors_graph
from torch.nn.functional import cross_entropy

images, digits = load_digits(return_X_y=True)
images = images / 16
graph = plap.Graph.from_scipy(kneighbors_graph(images, 8))
print(graph)


def known_labels(share: float, seed: int) -> np.ndarray:
    """The labels, −1 where unknown: two of each digit at least, the rest at random."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(digits.size)
    first = np.concatenate([order[digits[order] == digit][:2] for digit in range(10)])
    rest = order[~np.isin(order, first)][: max(0, round(share * digits.size) - first.size)]
    y = np.full(digits.size, -1)
    chosen = np.concatenate([first, rest])
    y[chosen] = digits[chosen]
    return y


def pgnn(y: np.ndarray, seed: int) -> np.ndarray:
    """Train for a fixed number of epochs: there are too few labels to set some aside for early stopping."""
    torch.manual_seed(seed)
    x, target, known = torch.from_numpy(images).float(), torch.from_numpy(y), torch.from_numpy(y >= 0)
    model = plap.nn.PGNN(64, 32, 10, p=1.5, mu=0.1, K=6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(80):
        optimizer.zero_grad()
        cross_entropy(model(x, graph)[known], target[known]).backward()
        optimizer.step()
    return model.eval()(x, graph).argmax(1).numpy()


# %%
# All three methods see the same labels and are scored on the images without one.

shares = [0.01, 0.03, 0.1]
measured: dict[str, list[list[float]]] = {}
for seed in range(3):
    for share in shares:
        y = known_labels(share, seed)
        hidden = y < 0
        simple = LogisticRegression(max_iter=1000).fit(images[~hidden], y[~hidden])
        spreading = plap.PLaplacianLabelPropagation(p=1.5).fit(graph, y)
        for name, predicted in {
            "logistic regression (pixels alone)": simple.predict(images),
            "label propagation (edges alone)": spreading.predict(),
            "pGNN (both)": pgnn(y, seed),
        }.items():
            right = float((predicted[hidden] == digits[hidden]).mean())
            measured.setdefault(name, [[] for _ in shares])[shares.index(share)].append(right)

# %%

import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), marker in zip(measured.items(), "so^", strict=True):
    middle = [np.mean(each) for each in values]
    axis.plot(shares, middle, marker=marker, label=name)
    axis.fill_between(shares, [min(each) for each in values], [max(each) for each in values], alpha=0.2)
axis.set_xscale("log")
axis.set_xticks(shares, [f"{share:.0%}" for share in shares])
axis.minorticks_off()
axis.set(xlabel="share of the images whose label is known", ylabel="accuracy on the others")
axis.legend()
plt.show()

# sphinx_gallery_start_ignore
assert (
    np.mean(measured["label propagation (edges alone)"][0])
    > np.mean(measured["logistic regression (pixels alone)"][0]) + 0.05
)
# sphinx_gallery_end_ignore
# %%
# Lines are means of three draws of the labels, bands their range. The fewer labels there are, the
# more the edges are worth. Here they already say what the pixels could, because they were made from
# the pixels: label propagation, without any training, is as good as pGNN or better. Where edges
# come from elsewhere, features and edges add up.
