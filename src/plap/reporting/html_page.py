"""How every HTML page is made: one file with everything in it, escaped, light and dark, phone and desktop."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from plap.reporting.number_text import count, number, percent
from plap.reporting.palette import PAGE_COLOURS


def render_template(name: str, **content: object) -> str:
    """Fill in a template of ``reporting/templates``; a name that the template misses is an error."""
    return _environment().get_template(name).render(**content)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("plap.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "number": number, "count": count}
    environment.globals["page_colours"] = PAGE_COLOURS
    return environment
