"""The paper's tables: what was published, and which configurations won here."""

from plap.experiments.published import PublishedCell, PublishedTable, load_published, published_tables
from plap.experiments.winners import best

__all__ = ["PublishedCell", "PublishedTable", "best", "load_published", "published_tables"]
