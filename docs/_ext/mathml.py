"""Formulas as MathML, converted at build time by docutils: the pages need no script, no font and no network.

Every current browser draws MathML itself. A command that the converter does not know ends the build.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def visit_math(self: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula; its lines, if it has several, are aligned at ``&``."""
    self.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
