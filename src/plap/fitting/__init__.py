"""From a graph with some labels to a model, its scores and its files."""

from plap.fitting.models import Fitted, fit_model, member_probabilities

__all__ = ["Fitted", "fit_model", "member_probabilities"]
