"""The rules of the house: which way data flows, what a model touches, what is imported when."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import networkx
import pytest

import plap
from plap.models import find_model, model_names

PACKAGE = Path(plap.__file__).parent
LAYERS = (
    ("errors",),
    ("checks", "memory", "memo", "sparse", "split_masks", "atomic_file"),
    ("graph",),
    ("edge_lengths",),
    ("penalties",),
    ("penalty_checks",),
    ("calculus",),
    ("kernels",),
    ("propagation",),
    ("solving",),
    ("nn", "data"),
    ("label_propagation", "parts"),
    ("models",),
    ("training", "spectral"),
    ("insight",),
    ("reporting",),
    ("fitting",),
    ("experiments",),
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
SOURCES = sorted(PACKAGE.rglob("*.py"))
MOST_LAZY_IMPORTS = 40
MOST_MODULES_OF_A_FIT = 109
"""108, and one more where the kernels are yet to be compiled."""
MOST_MODULES = 280
"""With room for new models, pictures and commands, which are a file each."""
HARD_TO_TELL_FROM_WORDS = {"gat", "gcn", "mlp", "rung", "sage", "sgc"}
"""Models whose names may be other strings as well."""


def module_name(source: Path) -> str:
    parts = ["plap", *source.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(source): source for source in SOURCES}


def imported(source: Path) -> set[str]:
    """Modules of plap that a file imports, inside functions too; not those for type annotations alone."""
    tree = ast.parse(source.read_text())
    annotations = [
        node for block in ast.walk(tree) if isinstance(block, ast.If)
        and getattr(block.test, "id", "") == "TYPE_CHECKING" for node in ast.walk(block)
    ]  # fmt: skip
    found = set()
    for node in ast.walk(tree):
        if node in annotations:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "plap":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name in MODULES)
    return found


IMPORTS = {name: imported(source) - {name, "plap"} for name, source in MODULES.items()}


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_only(source: Path) -> None:
    part = source.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if part in ("__init__", "__main__"):
        return
    assert part in LEVEL, f"{part} has no place in LAYERS"
    for other in {name.split(".")[1] for name in IMPORTS[module_name(source)]} - {part}:
        assert LEVEL[other] < LEVEL[part], f"{part} imports {other}"


def test_no_two_modules_import_each_other() -> None:
    """Not even through others; a package's ``__init__`` counts as the package's list of names."""
    graph = networkx.DiGraph(
        (name, other)
        for name, others in IMPORTS.items()
        for other in others
        if not name.startswith(f"{other}.")
    )
    assert [cycle for cycle in networkx.strongly_connected_components(graph) if len(cycle) > 1] == []


def test_few_imports_inside_functions() -> None:
    lazy = [line for source in SOURCES for line in source.read_text().splitlines() if "PLC0415" in line]
    assert len(lazy) <= MOST_LAZY_IMPORTS, lazy


@pytest.mark.parametrize("model", [name for name in model_names() if name not in HARD_TO_TELL_FROM_WORDS])
def test_a_model_is_known_to_its_own_file(model: str) -> None:
    """Elsewhere it is asked, never named, in code; the model that is the default excepted."""
    own = Path(sys.modules[find_model(model).parameters.__module__].__file__ or "")
    named = {
        str(source.relative_to(PACKAGE))
        for source in SOURCES
        if source != own and source.parts[-2] != "figures" and model in literals(source)
    }
    known = {"training/config.py", "fitting/settings.py", "insight/trust_comparison.py"}
    assert named <= known if model == "pgnn" else not named


def literals(source: Path) -> set[str]:
    """The strings of a file, without its docstrings' examples."""
    nodes = ast.walk(ast.parse(source.read_text()))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_nobody_changes_the_environment_of_the_caller() -> None:
    change = re.compile(r"environ\[[^]]+\]\s*\|?=[^=]|environ\.(setdefault|update|pop)|putenv|environ \|=")
    found = {str(p.relative_to(PACKAGE)) for p in SOURCES if change.search(p.read_text())}
    assert found == {"experiments/local_processes.py"}  # in a worker's own process


def test_few_modules() -> None:
    """A file with one definition and one importer belongs to its importer."""
    assert len(SOURCES) <= MOST_MODULES


CALLED = """
import sys, threading
called = set()

def importing(frame):
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False

def watch(frame, event, argument):
    if event == "call":
        name = frame.f_globals.get("__name__", "")
        is_function = frame.f_code.co_flags & 1
        if name.startswith("plap") and name not in called and is_function and not importing(frame.f_back):
            called.add(name)

threading.setprofile(watch)
sys.setprofile(watch)
from plap.cli import main
try:
    main(["fit", *sys.argv[1:], "--budget", "100", "--max-epochs", "5", "--seeds", "1", "-q"])
except SystemExit:
    pass
sys.setprofile(None)
print(*sorted(called), sep="\\n", file=sys.stderr)
"""


def test_a_fit_goes_through_few_modules(tmp_path: Path) -> None:
    """A reader who follows ``plap fit`` on a folder of CSV files opens so many files at most."""
    folder = tmp_path / "graph"
    folder.mkdir()
    rows = [f"n{k},{'ab'[k % 2]},{k % 5},{k % 7}" for k in range(40)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,one,two", *rows]))
    (folder / "edges.csv").write_text(
        "\n".join(["source,target", *(f"n{k},n{(k + 1) % 40}" for k in range(40))])
    )
    command = [sys.executable, "-c", CALLED, str(folder), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    called = [line for line in done.stderr.splitlines() if line.startswith("plap")]
    assert (tmp_path / "out" / "report.html").exists()
    assert 20 < len(called) <= MOST_MODULES_OF_A_FIT, called
