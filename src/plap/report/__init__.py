"""The page that a fit leaves behind: one HTML file that needs nothing else."""

from plap.report.content import (
    ClassRow,
    Confusion,
    Curve,
    Dataset,
    EdgeRow,
    FitReport,
    NodeRow,
    Score,
    Trial,
)
from plap.report.finding import finding
from plap.report.page import render

__all__ = [
    "ClassRow",
    "Confusion",
    "Curve",
    "Dataset",
    "EdgeRow",
    "FitReport",
    "NodeRow",
    "Score",
    "Trial",
    "finding",
    "render",
]
