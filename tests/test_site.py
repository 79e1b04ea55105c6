"""The documentation site: it builds without a warning, and no link in it leads nowhere."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from documents import ROOT, public_names

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("sphinx_gallery") is None,
        reason="make test-all installs requirements-docs.txt",
    ),
]


class Page(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.formulas = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            if value and name in ("id", "name"):
                self.anchors.add(value)
        self.formulas += tag == "math"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, with every example of the gallery executed; built in a copy of the sources."""
    copy = tmp_path_factory.mktemp("site")
    for name in ("docs", "examples", "benchmarks", *(path.name for path in ROOT.glob("*.md"))):
        subprocess.run(["cp", "-r", str(ROOT / name), str(copy / name)], check=True)
    for made in ("_build", "gallery", "api/generated"):
        subprocess.run(["rm", "-rf", str(copy / "docs" / made)], check=True)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "html"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return copy / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_no_link_leads_nowhere(pages: dict[Path, Page]) -> None:
    assert broken(pages) == []


def broken(pages: dict[Path, Page]) -> list[str]:
    return [f"{path.name}: {link}" for path, page in pages.items() for link in bad_links(path, page, pages)]


def bad_links(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme in ("http", "https", "data", "mailto"):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        known = pages[target].anchors if target in pages else None
        missing = bool(parts.fragment) and known is not None and unquote(parts.fragment) not in known
        if missing or not target.exists():
            yield link


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    """Scripts, styles, fonts and pictures are all in the folder: the site works without a network."""
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for loader in ('src="http', '<link rel="stylesheet" type="text/css" href="http', "@import"):
            assert loader not in text, (path.name, loader)


def test_every_page_leads_back(site: Path, pages: dict[Path, Page]) -> None:
    start = (site / "index.html").resolve()
    for path, page in pages.items():
        targets = {(path.parent / unquote(urlsplit(link).path)).resolve() for link in page.links}
        assert start in targets or path.resolve() == start, path.name


def test_every_public_name_is_in_the_inventory(site: Path) -> None:
    content = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    names = {line.split(" ")[0] for line in zlib.decompress(content).decode().splitlines()}
    assert {f"{package}.{name}" for package, name in public_names()} - names == set()


def test_formulas_are_drawn_and_examples_can_be_downloaded(site: Path, pages: dict[Path, Page]) -> None:
    assert pages[site / "theory.html"].formulas > 20
    notebooks = {path.stem for path in (site / "_downloads").rglob("*.ipynb")}
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert examples <= notebooks
    for example in examples:
        assert list((site / "_images").glob(f"sphx_glr_{example}_*.png")), example


def test_formulas_mean_what_tex_means() -> None:
    """Where docutils reads TeX in its own way, the extension puts it right."""
    convert = runpy.run_path(str(ROOT / "docs" / "_ext" / "mathml.py"))["mathml"]
    half = re.sub(r"\s", "", convert(r"\tfrac12 \sum_{ij} a", block=True))
    assert re.search("<mfrac[^>]*><mn>1</mn><mn>2</mn></mfrac>", half)
    accented = re.sub(r"\s", "", convert(r"\tilde\alpha_i", block=False))
    assert "</mover><mi>i</mi></msub>" in accented
    assert "\N{FUNCTION APPLICATION}" in convert(r"\log(1 + D_i) < 1", block=False)
