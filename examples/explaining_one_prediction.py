"""
Explaining one prediction
=========================

Why was this node put into this class? Three questions with an answer in numbers: what would the
model have said without the neighbours, which neighbours counted, and what do those look like?
"""

import plap
import torch

data = plap.data.csbm(phi=0.4, n=800, f=60, d=6.0, seed=4)
noisy, random = plap.data.perturb_edges(data.graph, 0.25, seed=4)  # a quarter of the edges means nothing
split = plap.data.split(data, seed=4)

from plap.training import RunConfig, train_runs

configs = [RunConfig(p=1.5, mu=0.1, seed=seed, max_epochs=150, patience=50) for seed in range(3)]
members = plap.insight.members_of(train_runs(noisy, data.x, data.y, configs, split), 60, 2)

# %%
# With and without neighbours, for every node; then the test node that its neighbours helped most.

found = plap.insight.neighbour_help(members, data.x, noisy, data.y)
helped = torch.where(split.test & found.helped, found.gain, -1.0)
node = int(helped.argmax())
print(f"{int((split.test & found.helped).sum())} test nodes are right only because of their neighbours,")
print(f"{int((split.test & found.harmed).sum())} are wrong only because of them.")
alone, together = found.without_edges[node], found.with_edges[node]
print(f"Node {node}: probability of its class {alone:.2f} alone, {together:.2f} with neighbours")

# %%
# How much each of its neighbours counted (the weights of the last step, mean over the members), and
# what the model says about each of them when it stands alone.

weight = torch.stack([plap.insight.learned_weights(member, data.x, noisy) for member in members]).mean(0)
sources, targets = noisy.edge_index
into = targets == node
neighbours = sources[into]
counted = weight[into] / weight[into].sum()

# %%
# The neighbourhood: colour is the class, width is how much an edge counted, dotted edges are those
# that we made up. The percentage beside a bar is the probability that the model gives the neighbour
# itself, judged without its edges, of being in the same class as our node.

import matplotlib.pyplot as plt
import numpy as np

order = counted.argsort(descending=True)
neighbours, counted, made_up = neighbours[order], counted[order], random[into][order]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", width_ratios=(1, 1.2))
angle = np.linspace(0.5 * np.pi, 2.5 * np.pi, len(neighbours), endpoint=False)
place = np.column_stack([np.cos(angle), np.sin(angle)])
for (x, y), share, fake in zip(place, counted.tolist(), made_up.tolist(), strict=True):
    left.plot([0, x], [0, y], color="0.4", linewidth=14 * share, linestyle=":" if fake else "-", zorder=1)
colours = np.array(["C0", "C1"])
left.scatter(*place.T, s=420, c=colours[data.y[neighbours]], zorder=2)
left.scatter(0, 0, s=700, c=colours[data.y[node]], edgecolor="black", linewidth=2, zorder=3)
for (x, y), k in zip(place, neighbours.tolist(), strict=True):
    left.annotate(str(k), (x, y), ha="center", va="center", color="white", fontsize=9, zorder=4)
left.annotate(str(node), (0, 0), ha="center", va="center", color="white", fontweight="bold", zorder=4)
left.set(title=f"node {node} and its neighbours", aspect="equal", xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
left.axis("off")

label = int(data.y[node])
predicted_same = torch.where(found.label == label, found.without_edges, 1 - found.without_edges)
names = [
    f"{k} (random edge)" if fake else str(k)
    for k, fake in zip(neighbours.tolist(), made_up.tolist(), strict=True)
]
right.barh(names[::-1], counted.flip(0), color=colours[data.y[neighbours.flip(0)]])
for row, k in enumerate(neighbours.flip(0).tolist()):
    share = counted[len(counted) - 1 - row]
    right.text(share + 0.005, row, f"{predicted_same[k]:.0%}", va="center")
right.set(xlabel="share in the last step", title="how much each neighbour counted")
right.set_xlim(0, 1.15 * counted.max().item())
right.grid(visible=False)
plt.show()

# sphinx_gallery_start_ignore
assert int((split.test & found.helped).sum()) > int((split.test & found.harmed).sum())
# sphinx_gallery_end_ignore
# %%
# A weight says how much a neighbour counted, not that it was right to count: made-up edges have
# weight too. :doc:`which_edges_lie` judges an edge without the edge itself. The page of ``plap fit``
# explains nodes of your own graph, and PyG's ``Explainer`` takes :class:`plap.nn.PGNN`.
