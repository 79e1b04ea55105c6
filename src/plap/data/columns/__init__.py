"""Raw columns of a table to features: decided from the data, fitted on training rows, applied by name."""

from plap.data.columns.decisions import Column, ColumnPlan, Kind, Role
from plap.data.columns.dictionary import DataDictionary, DictionaryEntry
from plap.data.columns.drift import ColumnDrift, drift
from plap.data.columns.infer import infer_columns
from plap.data.columns.reading import CellError
from plap.data.columns.split_columns import SplitColumns, find_split
from plap.data.columns.transform import Applied, ColumnTransform, Note, OnBad

__all__ = [
    "Applied",
    "CellError",
    "Column",
    "ColumnDrift",
    "ColumnPlan",
    "ColumnTransform",
    "DataDictionary",
    "DictionaryEntry",
    "Kind",
    "Note",
    "OnBad",
    "Role",
    "SplitColumns",
    "drift",
    "find_split",
    "infer_columns",
]
