"""A user's model in one file: it is itself, and it cannot take the place of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from plap.errors import InputError
from plap.experiments import execution
from plap.experiments.model_files import ModelFile, load_model_file
from plap.experiments.rows import find_candidates, parse_row
from plap.experiments.runs import Job, Record, Setting
from plap.models import find_model

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


def train(file: ModelFile) -> list[Record]:
    row = parse_row("mine", {"file": "nowhere.py"})
    config = next(iter(find_candidates(row, file).configs()))
    records: list[Record] = []
    setting = Setting("sound", "csbm:phi=0.8,n=60,f=8,seed=0", "dense")
    execution.execute(Job(setting, "mine", file, (config,)), records.append)
    return records


def test_a_layer_of_ones_own() -> None:
    """PyG looks a layer's module and source up; the file need not exist where it is trained."""
    (record,) = train(ModelFile("nowhere/mean.py", OWN_LAYER))
    assert record.epochs > 0


def test_a_file_does_not_replace_a_model_of_plap() -> None:
    before = find_model("gcn")
    file = ModelFile("gcn.py", CONSTANT)
    (record,) = train(file)
    assert find_model("gcn") is before
    assert record.run.config.model == file.registered_name
    other = ModelFile("other/gcn.py", OWN_LAYER)
    assert load_model_file(other).kind.name != file.registered_name


def test_an_error_in_training_is_a_sentence_that_names_the_line() -> None:
    with pytest.raises(execution.TrainingError) as caught:
        train(ModelFile("fails.py", FAILING))
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
        load_model_file(ModelFile.read(path))
    assert words in str(caught.value)
