"""What a table came to, for people to read: terminal, Markdown, CSV, LaTeX, a page, pictures."""

from plap.experiments.rendering.files import render_files
from plap.experiments.rendering.terminal import show

__all__ = ["render_files", "show"]
