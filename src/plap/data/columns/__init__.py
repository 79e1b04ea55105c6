"""Raw columns of a table to features: decided from the data, fitted on training rows, applied by name."""

from plap.data.columns.cells import CellError
from plap.data.columns.infer import SplitColumns, find_split, infer_columns, unread_splits
from plap.data.columns.judging import Column, ColumnPlan, Kind, Role
from plap.data.columns.overview import ColumnDrift, DataDictionary, DictionaryEntry, drift, giveaways
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
    "giveaways",
    "infer_columns",
    "unread_splits",
]
