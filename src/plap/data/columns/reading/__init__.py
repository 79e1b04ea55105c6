"""Cells of any type and spelling to numbers, text or vectors."""

from plap.data.columns.reading.cells import CellError, Cells, Reader

__all__ = ["CellError", "Cells", "Reader"]
