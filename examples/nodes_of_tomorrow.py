"""
Nodes that arrive tomorrow
==========================

A model is fitted on today's customers. Tomorrow new ones arrive, with edges to old and new ones,
without labels, and perhaps with the columns in another order. ``result.predict`` (or ``plap predict
OUT GRAPH``) finds columns by name, treats unseen categories as rare ones, and says which nodes are
new.
"""

import numpy as np
import plap
import polars as pl

rng = np.random.default_rng(5)


def tables(ids: np.ndarray, group: np.ndarray) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Customers with a plan and a usage, and six calls each, mostly within their group."""
    usage = group * 1.0 + rng.normal(scale=1.5, size=ids.size)
    plan = np.where(rng.random(ids.size) < 0.3 + 0.2 * group, "flat", "prepaid")
    caller = np.repeat(np.arange(ids.size), 6)
    peers = [rng.choice(np.flatnonzero(group == group[k])) for k in caller]
    called = np.where(rng.random(caller.size) < 0.8, peers, rng.integers(ids.size, size=caller.size))
    apart = caller != called
    return (
        pl.DataFrame({"id": ids, "usage": usage, "plan": plan}),
        pl.DataFrame({"source": ids[caller[apart]], "target": ids[called[apart]]}),
    )


group = rng.integers(3, size=900)
ids = np.array([f"c{k}" for k in range(900)])
names = np.array(["private", "shop", "office"])
today, calls_today = tables(ids[:600], group[:600])
result = plap.fit(
    (today.with_columns(label=names[group[:600]]), calls_today),
    budget=800,
    seeds=2,
    max_epochs=150,
    patience=50,
    rivals=("mlp",),
)

# %%
# Tomorrow: all 900 customers, another order of columns, no labels.

tomorrow, calls_tomorrow = tables(ids, group)
predictions = result.predict((tomorrow.select("plan", "id", "usage"), calls_tomorrow)).frame()
print(predictions.tail(3))

# %%
# We made the graph up, so we can check the answers, for customers whom the model has seen and for
# new ones.

import matplotlib.pyplot as plt

right = predictions["predicted"].to_numpy() == names[group]
probability = predictions["probability"].to_numpy()
figure, (left, middle) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
parts = {"seen at fitting": slice(0, 600), "new tomorrow": slice(600, 900)}
methods = {method.name: method.scores["accuracy"] for method in result.methods}
bars = {"MLP, held-out today": methods["MLP"], "pGNN, held-out today": methods["pGNN"]}
bars |= {f"pGNN, {name}": right[part].mean() for name, part in parts.items()}
left.barh(list(reversed(bars)), list(reversed(bars.values())), color=["C0", "C0", "C0", "0.6"])
left.bar_label(left.containers[0], fmt="{:.1%}", padding=3)
left.set(xlim=(0, 1.15), xlabel="accuracy", xticks=[0, 0.5, 1])
for name, part in parts.items():
    middle.hist(probability[part], np.linspace(1 / 3, 1, 25), density=True, alpha=0.6, label=name)
middle.set(xlabel="probability of the predicted class", yticks=[])
middle.legend()
plt.show()

# sphinx_gallery_start_ignore
assert right[600:].mean() > methods["MLP"] + 0.05
assert abs(right[600:].mean() - right[:600].mean()) < 0.1
# sphinx_gallery_end_ignore
# %%
# New customers are predicted about as well as known ones: the model learned how to use neighbours,
# not who is who.
