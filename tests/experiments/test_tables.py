from __future__ import annotations

from pathlib import Path

import pytest

import outcome_samples
from plap.errors import InputError
from plap.experiments.published import published_tables
from plap.experiments.rows import find_candidates, find_row
from plap.experiments.runs import files_digest
from plap.experiments.tables import load_table, table_names
from plap.models import model_names
from tiny_experiments import write_tiny_table


def test_every_published_table_of_results_can_be_run() -> None:
    assert set(table_names()) == set(published_tables()) - {"datasets"}


@pytest.mark.parametrize("name", outcome_samples.OF_THE_PAPER)
def test_a_table_of_the_paper_has_the_published_rows_and_columns(name: str) -> None:
    table = load_table(name)
    assert table.published is not None
    assert (table.models, table.datasets) == (table.published.rows, table.published.columns)
    if name == "robustness":  # not of the paper
        assert (table.protocol, table.split, table.runs) == ("sound", "public", 10)
        return
    assert table.protocol == "paper"
    assert table.measure == "time" or table.runs == table.published.runs
    assert table.published.split in (table.split, None) or table.split == "public"


def test_todays_benchmarks_beside_others_results() -> None:
    table = load_table("modern-heterophily")
    assert table.published is not None
    assert table.datasets == table.published.columns
    assert table.models[: len(table.published.rows)] == table.published.rows
    assert [row.key for row in table.rows if row.is_run] == [
        "mlp", "gcn", "pgnn-2.0", "deep-pgnn-plain", "deep-pgnn-blocks",
    ]  # fmt: skip
    assert (table.protocol, table.split, table.runs) == ("masks", "public", 10)
    for row in table.rows:
        if row.is_run:
            assert all(config.lr > 0 for config in find_candidates(row).configs())


def test_own_table(tmp_path: Path) -> None:
    table = load_table(str(write_tiny_table(tmp_path)))
    assert table.models == ("mlp", "two_hop")
    assert [row.file for row in table.rows] == [None, tmp_path / "two_hop.py"]
    assert (table.protocol, table.published, table.families) == ("sound", None, (("mlp", "two_hop"),))


def test_datasets_are_found_beside_the_table(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    path = write_tiny_table(tmp_path, 'models = ["mlp"]\ndatasets = ["mine", "mine:r=0.5", "texas"]')
    assert load_table(str(path)).datasets == (
        str(tmp_path / "mine"), f"{tmp_path / 'mine'}:r=0.5", "texas",
    )  # fmt: skip


PLAIN = 'models = ["mlp"]\ndatasets = ["texas"]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('models = ["mlp"]', "datasets must be a list of names"),
        ('models = "mlp"\ndatasets = ["texas"]', "models must be a list of names"),
        ('models = ["mlp", "mlp"]\ndatasets = ["texas"]', "models names something twice"),
        ('models = ["mlp"]\ndatasets = ["texas"]\nrun = 3', "unknown field 'run': did you mean runs"),
        ('models = ["mlp"]\ndatasets = ["texas"]\nruns = 0', "runs must be an integer of 1 or more, not 0"),
        ('models = ["mlp"]\ndatasets = ["texas"]\nsplit = "half"', "split must be one of"),
        ('models = ["mlp"]\ndatasets = ["texas"]\nmeasure = "f1"', "measure must be one of score, time"),
        ("models = [", "is not a TOML file"),
        (f"{PLAIN}title = 5", "title must be text, not 5"),
        (f"{PLAIN}published = 5", "published must be text, not 5"),
        (f"{PLAIN}curve = 3", "curve must be text, not 3"),
        (f"{PLAIN}hidden = 0", "hidden must be an integer of 1 or more, not 0"),
        (f"{PLAIN}runs = true", "runs must be an integer of 1 or more, not True"),
        (f"{PLAIN}small = 3", "small must be a table of lists, not 3"),
        (f"{PLAIN}small = {{ K = 4 }}", "small.K must be a list of values, not 4"),
        (f"{PLAIN}families = 3", "families must be a list, not 3"),
        (f'{PLAIN}families = ["mlp"]', "families must be a list of lists of models, not of 'mlp'"),
        (f'{PLAIN}families = [["mlpp"]]', "families names 'mlpp', which is no row: mlp"),
        (f"{PLAIN}rows = 3", "rows must be a table of rows, not 3"),
        (f"{PLAIN}[rows]\nmlp = 3", "rows.mlp must be a table of fields, not 3"),
        (f'{PLAIN}[rows]\nmlp = {{ model = "mpl" }}', "rows.mlp: model must be one of pgnn, mlp"),
        (f'{PLAIN}[rows]\nmlp = {{ model = "mlp", p = 2 }}', "rows.mlp: mlp has no field 'p'"),
        (f'{PLAIN}[rows]\nmlp = {{ model = "mlp", hidden = 0 }}', "rows.mlp: hidden must be an integer"),
        (f'{PLAIN}[rows]\nmlp = {{ model = "mlp", label = 3 }}', "rows.mlp: label must be text, not 3"),
        (f'{PLAIN}[rows]\nmlp = {{ model = "mlp", file = "a.py" }}', "a model or a file, not both"),
        (f'{PLAIN}[rows]\nmlp = {{ label = "MLP", p = 3 }}', "has a label and nothing else"),
        ('models = ["gatt"]\ndatasets = ["texas"]', "no row named 'gatt': did you mean gat"),
        ('models = ["pgnn-1.7"]\ndatasets = ["texas"]', "define a row of your own in the table's [rows]"),
        ('models = ["gcn", "gcn.py"]\ndatasets = ["texas"]', "two rows of models would be called 'gcn'"),
    ],
)
def test_mistakes_in_a_table(tmp_path: Path, text: str, words: str) -> None:
    path = write_tiny_table(tmp_path, text)
    with pytest.raises(InputError, match=r"tiny\.toml") as caught:
        load_table(str(path))
    assert words in str(caught.value)


def test_a_folder_that_is_called_like_a_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texas").mkdir()
    (tmp_path / "texas" / "edges.csv").write_text("source,target\n0,1\n")
    write_tiny_table(tmp_path, PLAIN)
    assert load_table("tiny.toml").datasets == ("./texas",)
    assert load_table("heterophilic").datasets[4] == "texas"
    assert files_digest("./texas")
    assert not files_digest("texas")


def test_unknown_tables() -> None:
    with pytest.raises(InputError, match="did you mean heterophilic"):
        load_table("heterofilic")
    with pytest.raises(InputError, match="cannot be read"):
        load_table("nowhere/table.toml")


@pytest.mark.parametrize(
    ("model", "full"),
    [("mlp", 8), ("gcn", 8), ("sgc", 4), ("gat", 8), ("jknet", 32), ("appnp", 32), ("gprgnn", 252),
     ("pgnn-1.0", 180), ("pgnn-2.5", 180), ("gcn+pgnn-1.5", 120), ("jknet+pgnn-1.5", 480)],
)  # fmt: skip
def test_the_grids_of_the_appendix(model: str, full: int) -> None:
    found = find_candidates(find_row(model))
    configs = found.configs()
    assert len(set(configs)) == len(configs) == full
    assert set(found.configs("small")) <= set(configs)
    assert all(config.max_epochs == 1000 and config.patience == 200 for config in configs)


def test_what_a_row_fixes_is_not_searched(tmp_path: Path) -> None:
    text = (
        'datasets = ["texas"]\n[rows]\nmine = { model = "pgnn", p = 1.7, mu = 3, lr = 0.02, label = "M" }\n'
    )
    (row,) = load_table(str(write_tiny_table(tmp_path, text))).rows
    assert (row.key, row.label) == ("mine", "M")
    found = find_candidates(row)
    assert set(found.grid) == {"dropout", "K", "weight_decay"}
    assert (found.base.parameters.p, found.base.parameters.mu, found.base.lr) == (1.7, 3.0, 0.02)
    assert {config.lr for config in found.configs("small")} == {0.02}


def test_a_list_in_a_row_is_searched(tmp_path: Path) -> None:
    fields = 'model = "pgnn", penalty = "mcp", gamma = [1.0, 2], mu = [0.5]'
    text = f'datasets = ["texas"]\n[rows]\nmine = {{ {fields} }}\n'
    (row,) = load_table(str(write_tiny_table(tmp_path, text))).rows
    assert row.label == "pGNN MCP"
    configs = find_candidates(row).configs("small")
    assert {config.parameters.gamma for config in configs} == {1.0, 2.0}
    assert {(config.parameters.mu, config.parameters.penalty) for config in configs} == {(0.5, "mcp")}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ("gamma = []", "gamma must have a value to search"),
        ("gamma = [1.0, -2.0]", "gamma must be a positive"),
    ],
)
def test_a_bad_list_is_one_sentence(fields: str, sentence: str, tmp_path: Path) -> None:
    text = f'datasets = ["texas"]\n[rows]\nmine = {{ model = "pgnn", {fields} }}\n'
    with pytest.raises(InputError, match=sentence):
        load_table(str(write_tiny_table(tmp_path, text)))


@pytest.mark.parametrize("model", model_names())
def test_every_model_is_a_row(model: str) -> None:
    assert find_candidates(find_row(model)).configs()


def test_rows_with_a_p() -> None:
    assert find_candidates(find_row("pgnn-1.5")).base.parameters.p == 1.5
