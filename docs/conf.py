"""How ``make docs`` builds the site; it needs no network, and every warning ends it."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import matplotlib
from sphinx.application import Sphinx

import plap

HERE = Path(__file__).parent
PAGES_OF_FILES = {
    "CONTRIBUTING": "contributing",
    "CODE_OF_CONDUCT": "code-of-conduct",
    "CHANGELOG": "changelog",
    "README": "index",
}
sys.path.insert(0, str(HERE / "_ext"))

project = "plap"
author = "the plap developers"
project_copyright = author
version = release = plap.__version__

extensions = [
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py"]
suppress_warnings = ["ref.python"]  # two attributes of the same name, as a word in a type
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [("py:(class|data|obj|exc)", ".*")]  # types in docstrings are words: "float or Tensor"

html_theme = "furo"
html_title = f"plap {version}"
html_static_path = ["_static"]
html_css_files = ["plap.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.position",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("plap",),
    "reset_modules": ("matplotlib", "gallery_style.apply"),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "thumbnail_size": (440, 220),
    "write_computation_times": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 0,
    "plot_gallery": "True",
}

matplotlib.use("agg")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def point_into_the_site(app: Sphinx, document: str, text: list[str]) -> None:
    """Let links to files at the root of the repository, and to examples, lead to their pages."""
    for file, page in PAGES_OF_FILES.items():
        text[0] = re.sub(rf"\]\((\.\./)*{file}\.md", f"](/{page}.md", text[0])
    text[0] = re.sub(r"\]\((?:\.\./)+examples\)", "](/gallery/index)", text[0])
    text[0] = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", r"](/gallery/\1)", text[0])


def point_included_text_into_the_site(
    app: Sphinx, relative_path: Path, parent_document: str, text: list[str]
) -> None:
    """Do the same in a file that a page includes."""
    point_into_the_site(app, parent_document, text)


def skip_what_others_add(
    app: Sphinx, what: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Leave out scikit-learn's ``set_fit_request`` and its kin, and the methods that PyG generates."""
    generated = str(getattr(member, "__module__", "")).endswith(("_propagate", "_edge_updater"))
    return True if generated or re.fullmatch(r"set_\w+_request", name) else None


def keep_colons(app: Sphinx, what: str, name: str, member: object, options: object, lines: list[str]) -> None:
    """Keep napoleon, which looks at the first line, from taking words before a colon for a type."""
    if what in ("attribute", "property", "data"):
        lines.insert(0, "")


def setup(app: Sphinx) -> None:
    """Register what this file defines."""
    app.connect("autodoc-process-docstring", keep_colons, priority=100)
    app.connect("autodoc-skip-member", skip_what_others_add)
    app.connect("source-read", point_into_the_site)
    app.connect("include-read", point_included_text_into_the_site)
