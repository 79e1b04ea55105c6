"""A browser for the tests of the page."""

from headless import browser

__all__ = ["browser"]
