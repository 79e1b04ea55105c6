"""The minimiser of Eq. 8: a small table of methods behind one differentiable function."""

from plap.solving.info import SolveInfo
from plap.solving.solver import solve

__all__ = ["SolveInfo", "solve"]
