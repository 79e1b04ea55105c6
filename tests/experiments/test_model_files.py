"""A user's model in one file: it is itself, and it cannot take the place of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from plap.errors import InputError
from plap.experiments import execution
from plap.experiments.assembly import assemble
from plap.experiments.cell_runs import stored_runs
from plap.experiments.local_processes import LocalProcesses
from plap.experiments.model_files import UserModelFile, load_model_file
from plap.experiments.plan import Effort, Selection, make_cells
from plap.experiments.rows import find_candidates, parse_row
from plap.experiments.runner import run_cells
from plap.experiments.runs import Job, Record, Setting
from plap.experiments.store import Store
from plap.experiments.tables import load_table
from plap.models import find_model, model_names

OWN_LAYER = """
import torch
from torch_geometric.nn import MessagePassing

class Mean(MessagePassing):
    def __init__(self, inputs, outputs):
        super().__init__(aggr="mean")
        self.lin = torch.nn.Linear(inputs, outputs)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=self.lin(x))

    def message(self, x_j):
        return x_j

GRID = {"lr": [0.01]}

def build(config, in_channels, out_channels):
    return Mean(in_channels, out_channels)
"""

CONSTANT = """
import torch

class Constant(torch.nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.value = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, x, edge_index):
        return self.value.expand(x.shape[0], -1)

def build(config, in_channels, out_channels):
    return Constant(out_channels)
"""

FAILING = CONSTANT.replace("return self.value", "raise ValueError('no such luck')\n        return self.value")


def train(file: UserModelFile) -> list[Record]:
    row = parse_row("mine", {"file": "nowhere.py"})
    config = next(iter(find_candidates(row, file).configs()))
    records: list[Record] = []
    setting = Setting("sound", "csbm:phi=0.8,n=60,f=8,seed=0", "dense")
    execution.execute(Job(setting, "mine", file, (config,)), records.append)
    return records


def test_a_layer_of_ones_own() -> None:
    """PyG looks a layer's module and source up; the file need not exist where it is trained."""
    (record,) = train(UserModelFile("nowhere/mean.py", OWN_LAYER))
    assert record.epochs > 0


OWN_PARAMETERS = OWN_LAYER.replace(
    "class Mean",
    """
from dataclasses import dataclass

from plap.models import Parameters, choice, integer

@dataclass(frozen=True)
class MeanParameters(Parameters):
    width: int = integer(4)
    way: str = choice("mean", "mean", "sum")

PARAMETERS = MeanParameters

class Mean""",
).replace('lr": [0.01]', 'lr": [0.01], "way": ["mean", "sum"]')
OWN_TABLE = """
datasets = ["csbm:phi=0.8,n=60,f=8"]
models = ["mean.py", "wide"]
runs = 2
[rows]
wide = { file = "mean.py", width = 8, label = "the wide one" }
"""


def test_parameters_of_ones_own_in_a_table_of_several_processes(tmp_path: Path) -> None:
    """The worker that trains has never heard of the parameters' class."""
    (tmp_path / "mean.py").write_text(OWN_PARAMETERS)
    (tmp_path / "own.toml").write_text(OWN_TABLE)
    table = load_table(str(tmp_path / "own.toml"))
    effort = Effort(runs=2, search_epochs=3, max_epochs=4, patience=3)
    cells = make_cells(table, "sound", effort, Selection())
    with Store(tmp_path / "runs.sqlite") as store:
        assert run_cells(cells, store, LocalProcesses(1)) == {}
        result = assemble(table, "sound", stored_runs(cells, store))
        records = store.all_records()
    assert [result.label(model) for model in result.models] == ["mean", "the wide one"]
    assert {record.run.config.parameters.width for record in records} == {4, 8}
    for cell in result.cells:
        assert len(cell.values) == 2
        assert cell.tried == 2
        assert cell.config is not None
        assert cell.config["way"] in ("mean", "sum")


def test_a_value_that_the_parameters_refuse(tmp_path: Path) -> None:
    (tmp_path / "mean.py").write_text(OWN_PARAMETERS)
    (tmp_path / "own.toml").write_text(OWN_TABLE.replace("width = 8", "widht = 8"))
    table = load_table(str(tmp_path / "own.toml"))
    with pytest.raises(InputError, match=r"no field 'widht' \(did you mean 'width'\?\)"):
        make_cells(table, "sound", Effort(runs=1), Selection())


def test_a_file_does_not_replace_a_model_of_plap() -> None:
    before = find_model("gcn")
    file = UserModelFile("gcn.py", CONSTANT)
    (record,) = train(file)
    assert find_model("gcn") is before
    assert record.run.config.model == file.registered_name
    other = UserModelFile("other/gcn.py", OWN_LAYER)
    assert load_model_file(other).kind.name != file.registered_name


def test_an_error_in_training_is_a_sentence_that_names_the_line() -> None:
    with pytest.raises(execution.TrainingError) as caught:
        train(UserModelFile("fails.py", FAILING))
    line = FAILING.splitlines().index("        raise ValueError('no such luck')") + 1
    assert caught.value.sentence == (
        f"mine on csbm:phi=0.8,n=60,f=8,seed=0 ended in ValueError: no such luck (fails.py, line {line})"
    )
    assert "Traceback" in caught.value.details


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("GRID = 5", "GRID must be a dictionary, not 5"),
        ("GRID = {'lr': []}", "GRID has no value for 'lr'"),
        ("GRID = {'lr': ['a']}", "lr must be a positive number, not 'a'"),
        ("GRID = {'rate': [1]}", "grid names 'rate', which is neither a parameter of the model"),
        ("FIXED = {'rate': 1}", "has no field 'rate': the model's are hidden, dropout"),
        ("FIXED = {'seed': 1}", "FIXED cannot have 'seed', which the table decides"),
        ("PARAMETERS = dict", "parameters must be a dataclass derived from plap.models.Parameters"),
        ("FIXED = {'hidden': 0}", "hidden"),
        ("TAKES = 'adjacency'", "takes must be graph or edge_index"),
        ("import sys; sys.exit()", "cannot be run: SystemExit"),
    ],
)
def test_mistakes(tmp_path: Path, code: str, words: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{CONSTANT}\n{code}\n")
    with pytest.raises(InputError, match=r"mine\.py") as caught:
        load_model_file(UserModelFile.read(path))
    assert words in str(caught.value)
    assert UserModelFile.read(path).registered_name not in model_names()
