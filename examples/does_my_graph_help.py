"""
Does my graph help?
===================

Before anything else: are predictions better with the edges than without them? ``plap fit`` answers
by training rivals that see less (features alone, edges alone, nothing) under the same conditions
and by judging all of them on the same held-out nodes. The same call can be made from Python, on
tables that are in memory.

Here are 600 customers with an age, a city and some columns of how they use the service, and a list
of who calls whom. Whether a customer leaves depends on the mood in the circle of friends, of which
each customer's columns hold only a faint trace.
"""

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 600
circle = rng.integers(30, size=n)  # who is friends with whom; in no column
mood = rng.normal(size=30)[circle]
trace = mood[:, None] * rng.normal(size=6) + rng.normal(scale=2.5, size=(n, 6))
nodes = pd.DataFrame(
    {
        "id": [f"c{k}" for k in range(n)],
        "age": rng.integers(18, 80, size=n),
        "city": rng.choice(["Lyon", "Porto", "Graz"], size=n),
        **{f"usage_{k}": trace[:, k].round(2) for k in range(6)},
    }
)
nodes["label"] = np.where(mood + 0.3 * rng.normal(size=n) > 0, "stays", "leaves")

# %%
# Most calls are among friends; a copy of the table has the same number of calls between random
# customers.


def calls(share_of_friends: float) -> pd.DataFrame:
    """Who calls whom: six calls per customer."""
    caller = np.repeat(np.arange(n), 6)
    friend = np.array([rng.choice(np.flatnonzero(circle == circle[k])) for k in caller])
    called = np.where(rng.random(caller.size) < share_of_friends, friend, rng.integers(n, size=caller.size))
    return pd.DataFrame({"source": nodes.id.values[caller], "target": nodes.id.values[called]})[
        caller != called
    ]


graphs = {"calls among friends": calls(0.9), "random calls": calls(0.0)}

# %%
# One call per graph. ``budget`` and ``seeds`` are small, and ``models`` leaves out deep networks, to
# keep the example short.

import plap

results = {
    name: plap.fit((nodes, edges), models=("pgnn",), budget=800, seeds=2, max_epochs=150, patience=50)
    for name, edges in graphs.items()
}

# %%
# Every method comes with a 95 % confidence interval on the held-out nodes.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharex=True, sharey=True, layout="constrained")
for axis, (name, result) in zip(axes, results.items(), strict=True):
    for row, method in enumerate(reversed(result.methods)):
        score = method.scores["accuracy"]
        low, high = method.interval
        colour = "C0" if method.name == "pGNN" else "0.6"
        axis.barh(row, score, color=colour, xerr=[[score - low], [high - score]], ecolor="0.2", capsize=3)
    axis.set_yticks(range(len(result.methods)), [f"{m.name}\n({m.uses})" for m in reversed(result.methods)])
    axis.set(title=name, xlabel="accuracy on held-out customers", xlim=(0.4, 1))
plt.show()

# %%
# With calls among friends the graph helps a lot: both methods that see the edges, pGNN and label
# propagation, are far above those that do not. With random calls the honest answer is no: the
# features alone are as good, and the intervals say how far apart the methods have to be before it
# means something.

# sphinx_gallery_start_ignore
friends, at_random = ({m.name: m.scores["accuracy"] for m in r.methods} for r in results.values())
assert friends["pGNN"] > friends["MLP"] + 0.08
assert at_random["pGNN"] < at_random["MLP"] + 0.05
# sphinx_gallery_end_ignore
