"""
Which edges lie?
================

A trained pGNN has an opinion about every edge. :func:`plap.insight.edge_trust` turns it into a
number: the odds that the two ends belong together, judged without the edge itself. To see how good
this number is, we replace a fifth of the edges by random ones, keep a record of which, and show the
model neither the record nor the original.
"""

import numpy as np
import plap
import torch

n = 1200
rng = np.random.default_rng(3)
circle = rng.integers(24, size=n)
y = torch.from_numpy(circle % 4)  # four classes of six circles each
x = torch.from_numpy(rng.normal(size=(24, 40))[circle] + rng.normal(scale=4.0, size=(n, 40))).float()
pairs = rng.integers(n, size=(400_000, 2))
friends = pairs[circle[pairs[:, 0]] == circle[pairs[:, 1]]][:5000]
graph = plap.Graph.from_edges(friends, num_nodes=n)
noisy, random = plap.data.perturb_edges(graph, 0.2, seed=3)
split = plap.data.split(y, seed=3)
print(noisy, f"of which {int(random.sum()) // 2} are random")

# %%
# Four runs are trained as one program; their modules are what the judgement needs.

from plap.training import RunConfig, train_runs

configs = [RunConfig(p=1.5, mu=0.1, K=4, seed=seed, max_epochs=200, patience=50) for seed in range(4)]
runs = train_runs(noisy, x, y, configs, split)
members = plap.insight.members_of(runs, x.shape[1], 4)
trust = plap.insight.edge_trust(members, x, noisy)

# %%
# Simple rivals: how alike the features of the two ends are, and the weight that the model's last
# step gave the edge.

from sklearn.metrics import roc_auc_score

weights = torch.stack([plap.insight.learned_weights(member, x, noisy) for member in members]).mean(0)
scores = {
    "edge trust": trust,
    "weights of the last step": plap.insight.relative_weights(weights, noisy),
    "Jaccard index of the neighbours": torch.from_numpy(
        plap.insight.neighbour_jaccard(noisy, noisy.edge_index)
    ),
    "cosine of the features": torch.from_numpy(plap.insight.feature_cosine(x, noisy.edge_index)),
}
areas = {name: roc_auc_score(~random, score) for name, score in scores.items()}
for name, area in areas.items():
    print(f"{name}: ROC-AUC {area:.2f} at telling real edges from random ones")

# %%
# The picture: trust of the real and of the random edges, and which share of the least trusted edges
# is random.

import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.4), layout="constrained")
log_trust = trust.log10()
bins = np.linspace(float(log_trust.quantile(0.005)), float(log_trust.quantile(0.995)), 40)
left.hist(log_trust[~random], bins, density=True, alpha=0.7, label="real edges")
left.hist(log_trust[random], bins, density=True, alpha=0.7, label="random edges")
left.axvline(0, color="0.3", linewidth=1)
left.set(xlabel="log₁₀ of edge trust (0 is chance)", yticks=[])
left.legend()
for name, score in scores.items():
    found = random[score.argsort()].double().cumsum(0) / torch.arange(1, random.numel() + 1)
    right.plot(np.linspace(0, 1, random.numel()), found, label=f"{name} ({areas[name]:.2f})")
right.axhline(0.2, color="0.6", linewidth=1, linestyle="--")
right.set(xlabel="least trusted share of the edges", ylabel="of which random", ylim=(0, 1), xlim=(0.005, 1))
right.legend(title="in brackets: ROC-AUC", loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# sphinx_gallery_start_ignore
assert areas["edge trust"] > max(area for name, area in areas.items() if name != "edge trust")
assert areas["edge trust"] > 0.65
# sphinx_gallery_end_ignore
# %%
# In a fitted folder the same numbers come from ``plap inspect OUT``, and the page of ``plap fit``
# shows them.
