"""From a graph with some labels to a model, its scores and its files."""

from plap.fitting.comparison import Method
from plap.fitting.pipeline import check_learnable, choose_split, fit
from plap.fitting.result import FitResult
from plap.fitting.settings import FitSettings, PieceSettings

__all__ = ["FitResult", "FitSettings", "Method", "PieceSettings", "check_learnable", "choose_split", "fit"]
