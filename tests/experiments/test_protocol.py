from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sklearn.metrics import roc_auc_score

from plap.data import load, split
from plap.errors import InputError
from plap.experiments.execution import execute
from plap.experiments.protocol import PROTOCOLS, find_protocol
from plap.experiments.runs import Job, Record, Setting, files_digest
from plap.training import RunConfig, train_runs

SMALL = "csbm:phi=0.5,n=80,f=4"


def test_the_paper_draws_once_for_all_runs() -> None:
    paper = PROTOCOLS["paper"]
    assert paper.open(SMALL, 0).graph.digest == paper.open(SMALL, 7).graph.digest
    assert paper.split(SMALL, 0, "dense").digest == paper.split(SMALL, 7, "dense").digest
    data = load(f"{SMALL},seed=2021")
    assert paper.open(SMALL, 3).graph.digest == data.graph.digest
    assert paper.split(SMALL, 3, "dense").digest == split(data, "paper", preset="dense", seed=2021).digest


def test_sound_runs_each_have_their_own_data() -> None:
    sound = PROTOCOLS["sound"]
    assert sound.open(SMALL, 0).graph.digest != sound.open(SMALL, 1).graph.digest
    assert sound.split(SMALL, 0, "dense").digest != sound.split(SMALL, 1, "dense").digest
    assert sound.split(SMALL, 1, "dense").digest == sound.split(SMALL, 1, "dense").digest
    assert sound.split(SMALL, 1, "dense").kind == "stratified"


def test_a_seed_in_the_name_is_kept() -> None:
    sound = PROTOCOLS["sound"]
    name = f"{SMALL},seed=5"
    assert sound.open(name, 0).graph.digest == sound.open(name, 1).graph.digest == load(name).graph.digest


def test_noise_replaces_edges_and_nothing_else() -> None:
    sound = PROTOCOLS["sound"]
    clean, noisy = sound.open(f"{SMALL},seed=5", 1), sound.open(f"{SMALL},seed=5,r=0.5", 1)
    assert clean.graph.num_edges == noisy.graph.num_edges
    assert clean.graph.digest != noisy.graph.digest
    assert torch.equal(clean.x, noisy.x)
    again, other = sound.open(f"{SMALL},seed=5,r=0.5", 1), sound.open(f"{SMALL},seed=5,r=0.5", 2)
    assert noisy.graph.digest == again.graph.digest != other.graph.digest


def test_cornell_is_the_corrected_one_in_sound_runs() -> None:
    assert PROTOCOLS["sound"].source("cornell-2021") == "cornell"
    assert PROTOCOLS["paper"].source("cornell-2021") == "cornell-2021"
    assert PROTOCOLS["paper"].source("computers:r=0.25") == "computers"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"{SMALL},r=lots", "r must be a number from 0 to 1, not 'lots'"),
        (f"{SMALL},r=2", "rate must be a number in"),
        ("texas:s=1", "texas has no parameter 's'"),
        ("texs", "did you mean texas"),
    ],
)
def test_mistakes_in_the_name_of_a_dataset(name: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        PROTOCOLS["sound"].open(name, 0)
    assert words in str(caught.value)


def test_unknown_protocol() -> None:
    with pytest.raises(InputError, match="protocol must be one of paper, sound, masks, not 'fair'"):
        find_protocol("fair")


def test_changed_files_have_another_digest(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "edges.csv").write_text("source,target\na,b\n")
    before = files_digest(str(folder))
    assert before
    assert before == files_digest(f"{folder}:r=0.5")
    (folder / "edges.csv").write_text("source,target\na,c\n")
    assert files_digest(str(folder)) != before


def test_given_masks_and_the_metric_of_two_classes() -> None:
    masks = PROTOCOLS["masks"]
    assert masks.task(masks.open(SMALL, 0)).metric.name == "roc_auc"
    assert PROTOCOLS["sound"].task(PROTOCOLS["sound"].open(SMALL, 0)).metric.name == "accuracy"
    assert masks.split(SMALL, 0, "dense").digest != masks.split(SMALL, 1, "dense").digest


def test_runs_with_two_classes_are_stopped_and_scored_by_roc_auc() -> None:
    records: list[Record] = []
    config = RunConfig("mlp", max_epochs=12, lr=0.05)
    execute(Job(Setting("masks", SMALL, "dense"), "mlp", None, (config,)), records.append)
    (record,) = records
    data, parts = PROTOCOLS["masks"].open(SMALL, 0), PROTOCOLS["masks"].split(SMALL, 0, "dense")
    task = data.task.with_metric("roc_auc")
    (result,) = train_runs(data.graph, data.x, data.y, [config], parts, task=task)
    assert (record.metric, record.val_score) == ("ROC-AUC", result.val_score)
    scores = result.logits.softmax(1)[parts.test, 1]
    assert record.test_score == pytest.approx(roc_auc_score(data.y[parts.test], scores))
