"""A table to run: which models on which datasets, and by which rules; one TOML file per table."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from plap.checks import check_choice, check_integer, did_you_mean
from plap.data.dataset import DatasetName
from plap.errors import InputError
from plap.experiments.protocol import PROTOCOLS
from plap.experiments.published import PERCENT, PublishedTable, load_published
from plap.experiments.rows import Row, find_row, parse_row

Measure = Literal["score", "time"]
_FOLDER = files("plap.experiments") / "tables"
_FIELDS = {
    "title", "models", "datasets", "families", "split", "runs", "protocol", "measure", "hidden", "published",
    "curve", "rows", "small", "rules",
}  # fmt: skip
_KINDS: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("title", "published", "curve"), (str, "text")),
    "families": (list, "a list"),
    "rules": (list, "a list of sentences"),
    "small": (dict, "a table of lists"),
    "rows": (dict, "a table of rows"),
}


@dataclass(frozen=True)
class TableDefinition:
    """A table as a TOML file defines it: one of plap's, or a user's own.

    Rows and columns are those of the published table of the same name unless the file names its own.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    """See :mod:`plap.experiments.rows`."""
    datasets: tuple[str, ...]
    """Benchmarks, paths or cSBMs; ``:r=0.5`` after the name makes half of the edges random."""
    families: tuple[tuple[str, ...], ...]
    """Rows that are compared with each other: the best of each is marked."""
    split: str = "dense"
    """``sparse`` or ``dense``, or ``public`` for the split that came with the data."""
    runs: int = 10
    protocol: str = "sound"
    measure: Measure = "score"
    hidden: int | None = None
    """Hidden units of all rows that do not set their own number; None: each model's default."""
    published: PublishedTable | None = None
    curve: str | None = None
    """The parameter in the datasets' names (``phi`` or ``r``) that a picture has along its axis."""
    small: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Values of the small grid in this table, instead of the models' own."""
    rules: tuple[str, ...] = ()
    """What a reader must know besides the protocol's rules; one sentence each."""

    @property
    def models(self) -> tuple[str, ...]:
        """The rows' keys, top to bottom."""
        return tuple(row.key for row in self.rows)

    @property
    def labels(self) -> dict[str, str]:
        """What a reader calls each row, by its key."""
        return {row.key: row.label for row in self.rows}

    @property
    def highlighted(self) -> frozenset[str]:
        """Keys of the rows that the table is about: models of the p-Laplacian."""
        return frozenset(row.key for row in self.rows if row.is_p_laplacian)

    @property
    def full_score(self) -> float | None:
        """A perfect score as the table writes it; None in a table of running times."""
        if self.measure == "time":
            return None
        return PERCENT if self.published is None else self.published.full_score


def table_names() -> tuple[str, ...]:
    """Names of the paper's tables that can be run, in alphabetical order.

    Examples
    --------
    >>> "heterophilic" in table_names()
    True
    """
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir()))


def load_table(name: str) -> TableDefinition:
    """A table of the paper by its name, or a user's own by the path of its TOML file.

    Examples
    --------
    >>> table = load_table("noisy-heterophilic")
    >>> table.runs, table.split, table.curve, table.datasets[0]
    (20, 'dense', 'r', 'wisconsin:r=0.25')
    """
    path = Path(name)
    if path.suffix == ".toml":
        return _parse(_read(path), path.stem, path.parent, str(path))
    key = name.strip().lower().replace("_", "-")
    if key in table_names():
        raw = tomllib.loads((_FOLDER / f"{key}.toml").read_text(encoding="utf-8"))
        return _parse(raw, key, None, key)
    hint = did_you_mean(key, table_names())
    raise InputError(f"there is no table named {name!r}: {hint} (a table of your own is a .toml file)")


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a TOML file: {error}") from None


def _parse(raw: Mapping[str, Any], name: str, folder: Path | None, where: str) -> TableDefinition:
    unknown = sorted(set(raw) - _FIELDS)
    if unknown:
        raise InputError(
            f"{where}: unknown field {unknown[0]!r}: {did_you_mean(unknown[0], sorted(_FIELDS))}"
        )
    for field_name, (kind, said) in _KINDS.items():
        if field_name in raw and not isinstance(raw[field_name], kind):
            raise InputError(f"{where}: {field_name} must be {said}, not {raw[field_name]!r}")
    published = load_published(raw["published"]) if "published" in raw else None
    own = _own_rows(raw.get("rows", {}), folder, where)
    models = _names(raw, "models", where, published.rows if published else tuple(own))
    datasets = _names(raw, "datasets", where, published.columns if published else None)
    rows = tuple(_row(model, own, folder, where) for model in models)
    keys = tuple(row.key for row in rows)
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"{where}: two rows of models would be called {twice!r}")
    families = raw.get("families", published.families if published else [keys])
    runs = check_integer(f"{where}: runs", raw.get("runs", 10), 1)
    check_integer(f"{where}: hidden", raw.get("hidden", 1), 1)
    _check_families(raw.get("families", []), keys, where)
    _check_choice(raw, "measure", get_args(Measure), where)
    _check_choice(raw, "split", ("sparse", "dense", "public"), where)
    _check_choice(raw, "protocol", tuple(PROTOCOLS), where)
    return TableDefinition(
        name=name,
        title=raw.get("title", published.caption if published else name),
        rows=rows,
        datasets=tuple(_placed(dataset, folder) for dataset in datasets),
        families=tuple(tuple(family) for family in families),
        split=raw.get("split", "dense"),
        runs=runs,
        protocol=raw.get("protocol", "sound"),
        measure=raw.get("measure", "score"),
        hidden=raw.get("hidden"),
        published=published,
        curve=raw.get("curve"),
        rules=tuple(map(str, raw.get("rules", ()))),
        small={name: _values(name, values, where) for name, values in raw.get("small", {}).items()},
    )


def _own_rows(raw: Mapping[str, Any], folder: Path | None, where: str) -> dict[str, Row]:
    rows = {}
    for key, fields in raw.items():
        if not isinstance(fields, dict):
            raise InputError(f"{where}: rows.{key} must be a table of fields, not {fields!r}")
        try:
            rows[key] = parse_row(key, fields, folder)
        except InputError as error:
            raise InputError(f"{where}: rows.{key}: {error}") from None
    return rows


def _row(model: str, own: Mapping[str, Row], folder: Path | None, where: str) -> Row:
    if model not in own and model.endswith(".py"):
        return parse_row(Path(model).stem, {"file": model}, folder)
    try:
        return find_row(model, own)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _names(
    raw: Mapping[str, Any], field_name: str, where: str, default: tuple[str, ...] | None
) -> tuple[str, ...]:
    names = raw.get(field_name, default)
    if not names or isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{where}: {field_name} must be a list of names")
    if len(set(names)) < len(names):
        raise InputError(f"{where}: {field_name} names something twice")
    return tuple(names)


def _values(name: str, values: object, where: str) -> tuple[float, ...]:
    if not isinstance(values, list) or not values:
        raise InputError(f"{where}: small.{name} must be a list of values, not {values!r}")
    return tuple(values)


def _check_families(groups: Sequence[object], keys: tuple[str, ...], where: str) -> None:
    for group in groups:
        if not isinstance(group, list | tuple):
            raise InputError(f"{where}: families must be a list of lists of models, not of {group!r}")
        for name in group:
            if name not in keys:
                raise InputError(f"{where}: families names {name!r}, which is no row: {', '.join(keys)}")


def _check_choice(raw: Mapping[str, Any], field_name: str, choices: tuple[str, ...], where: str) -> None:
    if field_name in raw:
        check_choice(f"{where}: {field_name}", raw[field_name], choices)


def _placed(dataset: str, folder: Path | None) -> str:
    """Paths in a user's table are relative to its folder; a name without a folder is a benchmark's."""
    name = DatasetName.parse(dataset)
    if folder is None or not name.base or not (folder / name.base).exists():
        return dataset
    placed = name.with_base(str(folder / name.base))
    return str(placed if placed.is_path else placed.with_base(f".{os.sep}{placed.base}"))
