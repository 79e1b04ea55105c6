"""What the guide says of options and results, and what getting-started says is printed, is what there is."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperOption

import plap
from command import run
from documents import ROOT, blocks
from plap.cli import application
from plap.data.tables.options import TableOptions
from plap.fitting import FitSettings, PieceSettings
from plap.fitting.settings import MODEL
from plap.models import find_model
from plap.training.config import OF_TRAINING

GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
STARTED = ROOT / "docs" / "getting-started.md"
OPTIONS = "## All options of `plap fit`"
NOT_GIVEN = {"", "none", "no limit", "off", "searched"}
"""What the guide says of an option without a default value."""
SETTINGS = {field.name for field in fields(FitSettings)}
ARGUMENTS = {
    "read_tables": {field.name for field in fields(TableOptions)} | {"nodes"},
    "PieceSettings": {field.name for field in fields(PieceSettings)},
    "split": set(inspect.signature(plap.data.split).parameters),
    "load": set(inspect.signature(plap.data.load).parameters),
}
OUTPUT = {"--out", "--log", "--json", "--quiet", "--help", "--on-bad-rows"}


def options(command: str) -> list[TyperOption]:
    """The options of a command but for --help."""
    (found,) = (
        found
        for name, found in typer.main.get_command(application(command)).commands.items()  # type: ignore[attr-defined]
        if name == command
    )
    return [option for option in found.params if isinstance(option, TyperOption)]


def section(heading: str) -> str:
    """What is below a heading of the guide, down to the next one of its level."""
    text = GUIDE.split(f"\n{heading}\n")[1]
    return re.split(rf"^#{{1,{heading.index(' ')}}} ", text, flags=re.MULTILINE)[0]


def table(text: str) -> list[list[str]]:
    """The cells of a table, row by row, without its head."""
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in row[1:-1].split(" | ")] for row in rows]


def said(option: TyperOption) -> tuple[str, str]:
    """What the help says of an option, and of its default, apart from one another."""
    text = option.help or ""
    found = re.search(r" \(default: (.*)\)(?=\.$)| Default: (.*)\.$", text)
    default = (found[1] or found[2]) if found else ""
    if option.default is not None and option.default is not False and not option.required:
        flags = [*option.opts, *option.secondary_opts]
        default = flags[0] if option.default is True else str(option.default)
    return (text[: found.start()] if found else text).removesuffix("."), default


def test_the_guide_has_every_option_of_a_fit() -> None:
    groups = re.split(r"^### ", section(OPTIONS), flags=re.MULTILINE)[1:]
    rows = {row[0]: (group.splitlines()[0], *row[1:]) for group in groups for row in table(group)}
    listed = {
        ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts)): option
        for option in options("fit")
    }
    assert set(rows) == set(listed)
    for flags, option in listed.items():
        group, python, default, meaning = rows[flags]
        if option.opts[0] != "--on-bad-rows":
            assert group == (option.rich_help_panel or "Output"), flags
        text, real = said(option)
        assert meaning.replace("`", "") == text, flags
        if real:
            assert default.replace("`", "") == real, flags
        else:
            assert default.replace("`", "") in NOT_GIVEN, flags
        _check_python_name(python, option)


def _check_python_name(cell: str, option: TyperOption) -> None:
    """What the guide says of an option's name in Python is an argument that there is, with that default."""
    for code in re.findall(r"`([^`]+)`", cell):
        if found := re.fullmatch(r'fixed=\{"(\w+)": …\}', code):
            assert found[1] in (*find_model(MODEL).fields, *OF_TRAINING), cell
        elif found := re.fullmatch(r"(\w+)\((\w+)=…\)", code):
            assert found[2] in ARGUMENTS[found[1]], cell
        elif code.startswith("result."):
            assert hasattr(plap.FitResult, code.removeprefix("result.").split("(")[0]), cell
        else:
            assert code in SETTINGS, cell
            value = getattr(FitSettings(), code)
            if option.default is not None:
                assert (",".join(value) if isinstance(value, tuple) else value) == option.default, cell


def test_the_table_of_options_leaves_out_no_setting() -> None:
    text = section(OPTIONS)
    assert {name for name in SETTINGS if f"`{name}" not in text} == set()
    assert {name for name in ARGUMENTS["PieceSettings"] if f"({name}=…)" not in text} == {"device"}


def test_the_guide_has_every_key_of_the_metrics() -> None:
    data = plap.data.csbm(phi=0.7, n=60, f=5, d=8.0, seed=0)
    result = plap.fit(data, search=False, seeds=1, max_epochs=2, rivals=("majority",))
    rows = table(section("### What `metrics.json` holds"))
    keys = [key for row in rows for key in re.findall(r"`(\w+)`", row[0])]
    assert sorted(keys) == sorted(result.metrics)
    inner = {"split": result.metrics["split"], "methods": result.metrics["methods"][0]}
    for key, value in inner.items():
        (row,) = (row for row in rows if row[0] == f"`{key}`")
        assert set(re.findall(r"`(\w+)`", row[1])) == set(value)


def test_options_of_a_fit_are_in_groups(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = {option.opts[0] for option in options("fit") if not option.rich_help_panel}
    assert alone <= OUTPUT
    monkeypatch.setenv("COLUMNS", "110")
    assert run(monkeypatch, "fit", "--help") == 0
    shown = capsys.readouterr().out
    for group in ("Input", "Split", "Goal", "Search", "Fixed hyperparameters", "Training in pieces"):
        assert f"─ {group} ─" in shown


@pytest.mark.parametrize(
    "command", [["fit"], ["inspect"], ["reproduce"], ["data", "list"], ["bench"]], ids=" ".join
)
def test_switches_take_no_value(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *command, "--help") == 0
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert "bool" not in shown.lower()


def test_what_inspect_prints_is_what_getting_started_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    exec(blocks(STARTED, "python")[0], names)
    assert run(monkeypatch, "inspect", "mygraph/") == 0
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert blocks(STARTED, "text")[0].strip() == printed.strip()
