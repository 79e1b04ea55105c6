"""
A PyG model with one line changed
=================================

You have a model in PyTorch Geometric. :class:`plap.nn.PLaplacianConv` takes what ``GCNConv`` takes,
``edge_index`` and all, so trying it is one line.
"""

import plap
import torch
from torch.nn.functional import cross_entropy, dropout, relu
from torch_geometric.nn import GCNConv


class Net(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, robust: bool) -> None:
        super().__init__()
        self.first = torch.nn.Linear(inputs, 16)
        if robust:
            self.second = plap.nn.PLaplacianConv(16, outputs, p=2.5, mu=0.1, K=4)
        else:
            self.second = GCNConv(16, outputs)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.second(dropout(relu(self.first(x)), training=self.training), edge_index)


# %%
# A graph whose neighbours tend to differ, as a PyG ``edge_index``, and an ordinary training loop.

data = plap.data.csbm(phi=-0.6, n=1500, f=300, seed=2)
x, y, edge_index = data.x, data.y, data.graph.edge_index
parts = plap.data.split(data, seed=2)
histories = {}
for name, robust in [("GCNConv", False), ("PLaplacianConv", True)]:
    torch.manual_seed(0)
    model = Net(x.shape[1], 2, robust)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    history = []
    for _ in range(120):
        model.train()
        optimizer.zero_grad()
        cross_entropy(model(x, edge_index)[parts.train], y[parts.train]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = model(x, edge_index).argmax(1) == y
        history.append(right[parts.test].float().mean().item())
    histories[name] = history

# %%
# The layer can also tell how much each edge counted. Shown: weights of edges within a class and
# between the classes.

import matplotlib.pyplot as plt

with torch.no_grad():
    hidden = relu(model.first(x))
    _, (edges, weight) = model.second(hidden, edge_index, return_aggregation_weights=True)
same = y[edges[0]] == y[edges[1]]

figure, (left, right_axis) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, history in histories.items():
    left.plot(range(1, 121), history, label=name)
left.set(xlabel="epoch", ylabel="accuracy on test nodes", ylim=(0.4, 1))
left.legend()
right_axis.hist(
    [weight[same].numpy(), weight[~same].numpy()], 40, density=True, label=["same class", "different classes"]
)
right_axis.set(xlabel="weight of an edge in the last step", yticks=[])
right_axis.legend()
plt.show()

# sphinx_gallery_start_ignore
assert histories["PLaplacianConv"][-1] > histories["GCNConv"][-1] + 0.1
assert weight[~same].mean() > weight[same].mean()
# sphinx_gallery_end_ignore
# %%
# With p > 2 edges between nodes that differ count for more, which is what this graph needs.
# :doc:`/cheat-sheet` says which p to try first.
