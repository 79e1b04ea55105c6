"""Formulas as MathML, converted at build time by docutils: the pages need no script, no font and no network.

Every current browser draws MathML itself. A command that the converter does not know ends the build.
"""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree import ElementTree as ET

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

_TOKEN = r"(\\[A-Za-z]+|[^\s{}\\])"
_SPACE = "http://www.w3.org/1998/Math/MathML"
ET.register_namespace("", _SPACE)


def mathml(tex: str, *, block: bool) -> str:
    """Convert a formula."""
    root = ET.fromstring(without_names(tex2mathml(with_braces(tex), as_block=block)))
    for element in root.iter(f"{{{_SPACE}}}munderover"):
        base, below, above = element
        if above.tag == f"{{{_SPACE}}}mo" and base.tag == f"{{{_SPACE}}}mi":
            put_index_beside(element, base, below, above)
    return ET.tostring(root, encoding="unicode")


def without_names(text: str) -> str:
    """Write ``&ApplyFunction;`` and its kin, which HTML knows and XML does not, as characters."""
    return re.sub(r"&(?!lt;|gt;|amp;|quot;|apos;)\w+;", lambda name: html.unescape(name[0]), text)


def with_braces(tex: str) -> str:
    r"""Write ``\tfrac12`` as ``\tfrac{1}{2}``: docutils takes all digits that follow for one argument."""
    tex = re.sub(rf"(\\[td]?frac)\s*{_TOKEN}", r"\1{\2}", tex)
    return re.sub(rf"(\\[td]?frac\{{[^{{}}]*\}})\s*{_TOKEN}", r"\1{\2}", tex)


def put_index_beside(element: ET.Element, base: ET.Element, index: ET.Element, accent: ET.Element) -> None:
    """Make a letter with an accent and an index of what docutils takes for limits below and above."""
    element.clear()
    element.tag = f"{{{_SPACE}}}msub"
    accented = ET.SubElement(element, f"{{{_SPACE}}}mover", accent="true")
    accented.extend([base, accent])
    element.append(index)


def visit_math(self: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula; its lines, if it has several, are aligned at ``&``."""
    self.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
