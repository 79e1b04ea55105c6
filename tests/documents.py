"""The pages that people read, and what is in them."""

from __future__ import annotations

import importlib
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if not {"_build", "gallery", "generated"} & set(path.relative_to(ROOT).parts)
)

PUBLIC = (
    "plap",
    "plap.data",
    "plap.experiments",
    "plap.insight",
    "plap.models",
    "plap.nn",
    "plap.nn.baselines",
    "plap.parts",
    "plap.penalties",
    "plap.spectral",
    "plap.training",
    "plap.training.pieces",
    "plap.fitting.export",
)


def blocks(path: Path, language: str) -> list[str]:
    """Code of a page, in order."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rst":
        found = re.findall(rf"^\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)", text, flags=re.MULTILINE)
        return [textwrap.dedent(code) for code in found]
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def commands(path: Path) -> list[list[str]]:
    """Arguments of every call of plap in the shell blocks of a page."""
    found = []
    for block in blocks(path, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["torchrun"]:
                words = words[words.index("-m") + 1 :]
            if words[:1] == ["plap"]:
                found.append(words[1 : words.index(">")] if ">" in words else words[1:])
    return found


def anchors(path: Path) -> set[str]:
    """What can follow a # in a link to a page: its headings as GitHub and MyST write them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def public_names() -> Iterator[tuple[str, str]]:
    """Every public name that is no module, with the package that offers it."""
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in module.__all__:
            if not name.startswith("__") and not isinstance(getattr(module, name), ModuleType):
                yield package, name
