"""How the pictures of the gallery look: plap's palette, few lines, readable on a phone."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler

from plap.reporting.palette import CATEGORIES, GRID_LINE


def apply(gallery_conf: dict[str, Any], script: str) -> None:
    """Set Matplotlib's defaults; called before each example."""
    plt.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=CATEGORIES),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": GRID_LINE,
            "figure.dpi": 110,
            "font.size": 10.5,
            "legend.frameon": False,
        }
    )
