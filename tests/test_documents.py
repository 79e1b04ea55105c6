"""Links lead somewhere, commands exist, code runs, and every public name has an entry and an example."""

from __future__ import annotations

import itertools
import re
import runpy
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer.main

import plap
from documents import PAGES, ROOT, anchors, blocks, commands, public_names
from plap.cli import application
from plap.reporting.figures.adaptive_attack import MODELS

ROBUSTNESS = ROOT / "docs" / "robustness.md"

WITHOUT_EXAMPLE = {
    "EvaluateOn": "an annotation",
    "Grid": "an annotation",
    "SplitLike": "an annotation",
    "neighbour_loader": "needs pyg-lib, which is not among the requirements",
    "compare_trust_under_attack": "needs the files of an attacked benchmark",
}
RETURNED_BY = {
    "AttackCurve": "attack_curve",
    "AttackPoint": "attack_curve",
    "Bands": "filter_response",
    "Bounds": "eigenvalue_bounds",
    "Branch": "eigenpair_branches",
    "Branches": "eigenpair_branches",
    "Clustering": "spectral_clustering",
    "DatasetEstimate": "estimate",
    "DecompositionDefect": "decomposition_defect",
    "Eigenpair": "largest_eigenpair",
    "Ensemble": "train_ensemble",
    "Estimate": "estimate",
    "FitResult": "fit",
    "FixedSplits": "read_tables",
    "GraphInfo": "from_edges",
    "History": "train_runs",
    "InputError": "RunConfig",
    "Interval": "accuracy_interval",
    "MemoryNeeded": "memory_needed",
    "NeighbourHelp": "neighbour_help",
    "NodeExplanation": "explain_node",
    "NodeRegimes": "node_regimes",
    "OrthogonalityDefect": "orthogonality_defect",
    "PairStates": "pair_evidence",
    "PerturbedGraph": "perturb_edges",
    "Piece": "Pieces",
    "Progress": "train_runs",
    "Provenance": "read_tables",
    "PublishedCell": "load_published",
    "PublishedTable": "load_published",
    "Ranks": "join_ranks",
    "Response": "filter_response",
    "RiskBound": "risk_bound",
    "RunResult": "train_runs",
    "SolveInfo": "solve",
    "Spectrum": "spectrum",
    "Subgraph": "induced",
    "TASKS": "Task",
    "Trial": "tune",
    "TrustComparison": "compare_trust",
    "TuneResult": "tune",
    "Export": "export_model",
}
"""What people get rather than make, and an example's name that shows it."""
RUNNABLE = [
    ROOT / "docs" / "getting-started.md",
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    *sorted((ROOT / "docs" / "api").glob("*.rst")),
]


LONG = {"explain", "export", "own-results-table", "attack-and-trust", "robust-model", "customers"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _maybe_long(page: Path) -> Any:
    """Pages whose code starts processes or takes seconds even with little training are for make test-all."""
    return pytest.param(page, marks=pytest.mark.long) if page.stem in LONG else page


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        file, _, anchor = target.partition("#")
        assert "gallery" not in Path(file).parts, (
            f"{target}: link to examples/, where it is in the repository"
        )
        found = (page.parent / file).resolve() if file else page
        if found == ROOT / "docs" / "contributing.md":
            found = ROOT / "CONTRIBUTING.md"
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_exist(page: Path) -> None:
    """Every command on a page, with its flags, is one that plap takes; it is not run."""
    for name, *arguments in commands(page):
        group = typer.main.get_command(application(name))
        with group.make_context("plap", [name, *arguments], resilient_parsing=True) as context:
            command = group.get_command(context, name)  # type: ignore[attr-defined]
            assert command is not None, name
            command.make_context(name, list(arguments), parent=context)


@pytest.mark.parametrize(
    "page", [_maybe_long(page) for page in RUNNABLE if blocks(page, "python")], ids=name_of
)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of a page, from its first block to its last, with less training than it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    quick: dict[str, Any] = {"seeds": 1, "max_epochs": 3}
    monkeypatch.setattr(plap, "fit", partial(plap.fit, search=False, **quick), raising=False)
    for name in ("PGNNClassifier", "PGNNRegressor"):
        estimator = type(name, (getattr(plap, name),), {"__init__": _with(getattr(plap, name), quick)})
        monkeypatch.setattr(plap, name, estimator, raising=False)
    names: dict[str, object] = {"__name__": "page"}
    for code in blocks(page, "python"):
        shortened = re.sub(r"\brange\((?:80|100)\)|max_epochs=\d+", _fewer, code)
        exec(compile(shortened, str(page), "exec", dont_inherit=True), names)


def test_every_public_name_has_an_entry() -> None:
    entries = {
        (package, name)
        for page in (ROOT / "docs" / "api").glob("*.rst")
        for package in re.findall(r"^\.\. (?:\w*module):: (\S+)$", page.read_text(), flags=re.MULTILINE)
        for name in re.findall(r"^   (\w+)$|^\.\. data:: (\w+)$", page.read_text(), flags=re.MULTILINE)
        for name in name
        if name
    }
    assert set(public_names()) == entries, "list the names of __all__ in docs/api/*.rst"


def test_every_public_name_has_an_example() -> None:
    """In a docstring that runs as a test, on a page, or in the gallery."""
    lines = [
        line
        for source in (ROOT / "src").rglob("*.py")
        for line in source.read_text(encoding="utf-8").splitlines()
        if line.lstrip().startswith((">>> ", "... "))
    ]
    lines += [code for page in PAGES for code in blocks(page, "python")]
    lines += [example.read_text(encoding="utf-8") for example in (ROOT / "examples").glob("*.py")]
    used = set(re.findall(r"\w+", "\n".join(lines)))
    wanted = {RETURNED_BY.get(name, name) for _, name in public_names() if name not in WITHOUT_EXAMPLE}
    assert wanted - used == set()
    offered = {name for _, name in public_names()}
    assert set(WITHOUT_EXAMPLE) | set(RETURNED_BY) <= offered


def test_the_picture_of_the_readme_is_the_table() -> None:
    """``python docs/figures/lying_edges.py`` was run after the table last changed."""
    drawing = runpy.run_path(str(ROOT / "docs" / "figures" / "lying_edges.py"))
    points = drawing["measured"]()
    figures = ROOT / "docs" / "figures"
    assert drawing["as_csv"](points) == (figures / "lying-edges.csv").read_text(encoding="utf-8")
    assert 10_000 < (figures / "lying-edges.png").stat().st_size < 200_000
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ends = {(point.model, point.changed): point.mean for point in points}
    assert (
        f"plap falls from {ends['pGNN MCP', 0]} to {ends['pGNN MCP', 25]} %, "
        f"GCN from {ends['GCN', 0]} to {ends['GCN', 25]} %, an MLP without edges stays at {ends['MLP', 25]} %"
    ) in text


def test_the_robustness_table_of_the_readme_is_that_of_its_page() -> None:
    readme, page = (path.read_text(encoding="utf-8") for path in (ROOT / "README.md", ROBUSTNESS))
    before = accuracies(page.split("## Metattack on Cora")[1])
    after = accuracies(page.split("## An attack that knows the model")[1])
    shown = accuracies(readme.split("Robustness: test accuracy on Cora")[1])
    settings = {"pGNN MCP": "pGNN MCP, γ = 10, μ = 0.05", "MLP": None, "GCN": "GCN"}
    assert set(shown) == {"MLP", "GCN", "pGNN p = 1", "pGNN p = 1.5", "pGNN MCP"}
    for model, found in shown.items():
        expected: tuple[float, ...] = before[model][0], before[model][-1]
        attacked = settings.get(model, f"{model}, μ = 0.1")
        if attacked is not None:
            expected += after[attacked][0], after[attacked][-1]
        assert found == expected, model


def test_the_table_of_the_attack_is_its_data() -> None:
    page = ROBUSTNESS.read_text(encoding="utf-8").split("## An attack that knows the model")[1]
    data = pl.read_csv(ROOT / "docs" / "figures" / "adaptive-attack.csv")
    means = (
        data.filter(pl.col("attack") == "all test nodes")
        .group_by("model", "budget")
        .agg(pl.mean("accuracy") * 100)
        .sort("budget")
    )
    shown = accuracies(page)
    models = {name: max((m for m in MODELS if name.startswith(m)), key=len) for name in shown}
    assert set(models.values()) == set(MODELS)
    for name, model in models.items():
        found = means.filter(pl.col("model") == model)["accuracy"].to_list()
        assert shown[name] == pytest.approx(found, abs=0.06), name


def accuracies(text: str) -> dict[str, tuple[float, ...]]:
    """The first table of a text: the accuracy that each cell begins with, by what the row is called."""
    lines = text[text.index("|") :].splitlines()
    table = list(itertools.takewhile(lambda line: line.startswith("|"), lines))[2:]
    rows = ([cell.strip().strip("*") for cell in line.split("|")[1:-1]] for line in table)
    return {
        name.replace("pGNN, ", "pGNN "): tuple(float(n[0]) for c in cells if (n := re.match(r"\d+\.\d", c)))
        for name, *cells in rows
    }


def test_the_report_is_shown() -> None:
    """A screenshot of what ``plap fit`` writes for the graph of getting-started."""
    assert 10_000 < (ROOT / "docs" / "figures" / "fit-report.png").stat().st_size < 200_000


def test_the_reproduced_tables_are_those_of_the_evidence() -> None:
    """``make evidence`` was run after results/ or what is said about it last changed."""
    made = runpy.run_path(str(ROOT / "docs" / "figures" / "reproduced_tables.py"))["generated"]()
    assert len(made) == 3
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"run make evidence: {name_of(path)} is out of date"
    page = (ROOT / "docs" / "reproduced-tables.md").read_text(encoding="utf-8")
    for picture in re.findall(r"\]\((figures/[^)]+)\)", page):
        assert 10_000 < (ROOT / "docs" / picture).stat().st_size < 200_000


def test_the_pictures_of_the_paper_are_drawn_from_the_numbers_beside_them() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "figures" / "paper_pictures.py"))
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(figures/([^)]+)\.png\)", page)) == set(made["PICTURES"])
    for name, (figure, datasets) in made["PICTURES"].items():
        path = ROOT / "docs" / "figures" / f"{name}.png"
        assert 10_000 < path.stat().st_size < 200_000
        assert f"figures/{figure}.parquet" in page
        table = pl.read_parquet(path.with_name(f"{figure}.parquet"))
        assert table["dataset"].is_in(datasets).any()
        assert figure == "embeddings" or set(datasets) <= set(table["dataset"])
    assert made["drawn"]("embeddings-heterophilic").startswith(b"\x89PNG")


def test_the_gallery_is_complete() -> None:
    order = runpy.run_path(str(ROOT / "docs" / "_ext" / "gallery_order.py"))["ORDER"]
    assert set(order) == {path.name for path in (ROOT / "examples").glob("*.py")}
    for name in order:
        text = (ROOT / "examples" / name).read_text(encoding="utf-8")
        assert "plt.show()" in text, name
        assert "\nassert " in text, name  # what it says is checked


def _with(estimator: type, fixed: dict[str, int]) -> object:
    """An ``__init__`` that trains little, whatever it is told."""

    def __init__(self: object, **given: object) -> None:  # noqa: N807
        estimator.__init__(self, **{"tune": None, **given, **fixed})  # type: ignore[misc]

    return __init__


def _fewer(found: re.Match[str]) -> str:
    return "range(2)" if found[0].startswith("range") else "max_epochs=2"
