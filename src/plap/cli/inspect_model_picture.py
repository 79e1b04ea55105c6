"""The picture of ``plap inspect OUT --png``: entropy, trust and gain, drawn from their numbers alone."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from plap.cli.inspect_picture import BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from plap.insight.learned import Learned

_BINS = 40


def draw(learned: Learned) -> bytes:
    """Return a PNG."""
    figure = Figure(figsize=(12, 3.8), dpi=120, layout="constrained")
    entropy, trust, gain = figure.subplots(1, 3)
    _entropy(entropy, learned)
    _trust(trust, learned)
    _gain(gain, learned)
    for axes in (entropy, trust, gain):
        axes.spines[["top", "right"]].set_visible(False)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _entropy(axes: Axes, learned: Learned) -> None:
    axes.set(title="How a node weighs its neighbours", xlabel="entropy, nats", ylabel="nodes with edges")
    entropy, uniform = (values[~values.isnan()].numpy() for values in (learned.entropy, learned.uniform))
    bins = np.linspace(0, max(uniform.max(initial=0.0), 1e-9), _BINS + 1).tolist()
    axes.hist(entropy.clip(max=bins[-1]), bins, color=BLUE, alpha=0.85, label="learned")
    axes.hist(uniform, bins, histtype="step", color="black", label="all alike")
    axes.legend(frameon=False)


def _trust(axes: Axes, learned: Learned) -> None:
    axes.set(title="Edge trust", xlabel="times likelier than chance", ylabel="edges")
    if learned.trust is None:
        axes.text(0.5, 0.5, "nothing to compare", ha="center", va="center", transform=axes.transAxes)
        return
    values = learned.edges()["trust"].to_numpy()
    bins = np.geomspace(min(values.min(), 0.5), max(values.max(), 2), _BINS + 1).tolist()
    axes.hist(values, bins, color=GREEN, alpha=0.85)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linestyle="--", linewidth=1.2)


def _gain(axes: Axes, learned: Learned) -> None:
    known = bool(learned.judged.any())
    which, label = ("true", "nodes with a known label") if known else ("predicted", "nodes")
    axes.set(
        title="What the neighbours change", xlabel=f"probability of the {which} class:\nwith edges − without",
        ylabel=label,
    )  # fmt: skip
    values = learned.neighbours.gain[learned.judged] if known else learned.neighbours.gain
    axes.hist(values.numpy(), np.linspace(-1, 1, _BINS + 1).tolist(), color=ORANGE, alpha=0.85)
    axes.axvline(0, color="black", linestyle="--", linewidth=1.2)
