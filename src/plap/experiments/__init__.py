"""The paper's tables: what was published, as data."""

from plap.experiments.published import PublishedCell, PublishedTable, load_published, published_tables

__all__ = ["PublishedCell", "PublishedTable", "load_published", "published_tables"]
