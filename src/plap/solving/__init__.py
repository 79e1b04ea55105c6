"""The minimiser of Eq. 8: a small table of methods behind one differentiable function."""

from plap.solving.solver import SolveInfo, solve

__all__ = ["SolveInfo", "solve"]
