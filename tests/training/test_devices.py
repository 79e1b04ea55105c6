"""Training on another device: the same numbers as on the CPU, nothing read by the host, enough memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

import plap
import tiny_training as tiny
from one_device import META, OneDevice
from plap.kernels import registry
from plap.kernels.torch.backend import TORCH
from plap.nn import stacked_attention, stacked_lstm
from plap.training import RunConfig, adam, batch, inputs, loop, native, portable, train_runs
from plap.training.batch import Batch
from plap.training.devices import choose_device
from plap.training.results import RunResult


@pytest.mark.parametrize("size", [1, 4, 7, 130])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_dropout_masks_are_the_same_bits(size: int, dtype: torch.dtype) -> None:
    seeds = np.array([0, 3, 2**63 + 5], dtype=np.uint64)
    rates = torch.tensor([0.0, 0.5, 0.3], dtype=dtype)
    there = torch.from_numpy(seeds.view(np.int64))
    for epoch, layer in ((0, 0), (7, 2)):
        expected = native.dropout_masks(seeds, epoch, layer, rates, size)
        assert portable.dropout_masks(there, epoch, layer, rates, size).equal(expected)


def test_sparse_products_are_the_same() -> None:
    matrix = scipy.sparse.random_array((9, 6), density=0.4, rng=np.random.default_rng(1), format="csr")
    sparse = native.SparseMatrix.from_scipy(matrix, torch.float64)
    dense = torch.randn(3, 6, 5, dtype=torch.float64)
    parts = (sparse.indptr, sparse.indices, sparse.values)
    expected = native.stacked_product(sparse, dense)
    torch.testing.assert_close(portable.product(*parts, 6, dense), expected)
    torch.testing.assert_close(portable._gathered_product(*parts, dense), expected)


@pytest.fixture
def device_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU as if it were another device: no compiled loops, and the plain PyTorch backend."""
    for module in (native, inputs, adam, stacked_attention, stacked_lstm):
        monkeypatch.setattr(module, "compiled_for", lambda device: False)
    monkeypatch.setattr(registry, "BACKENDS", (TORCH,))


CONFIGS = {
    "pgnn": [RunConfig(p=p, max_epochs=12, seed=seed) for p, seed in ((1.5, 0), (2.0, 1), (2.5, 2))],
    "mcp": [RunConfig(penalty="mcp", gamma=1.0, max_epochs=8, weight_decay=5e-4)],
    "gcn": [RunConfig("gcn", max_epochs=8, seed=seed) for seed in (0, 1)],
    "sage": [RunConfig("sage", max_epochs=8, seed=seed) for seed in (0, 1)],
    "mlp": [RunConfig("mlp", max_epochs=8, dropout=0.3)],
    "deep-pgnn": [RunConfig("deep-pgnn", max_epochs=4)],
    "gat": [RunConfig("gat", max_epochs=5, seed=seed) for seed in (0, 1)],
    "jknet": [RunConfig("jknet", max_epochs=5, seed=seed) for seed in (0, 1)],
}


def train(configs: list[RunConfig], **options: Any) -> list[RunResult]:
    data = tiny.data()
    return train_runs(data.graph, data.x, data.y, configs, tiny.masks(data.y), **options)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_device_path_gives_the_history_of_the_fused_path(
    name: str, request: pytest.FixtureRequest
) -> None:
    expected = train(CONFIGS[name])
    request.getfixturevalue("device_path")
    for got, wanted in zip(train(CONFIGS[name]), expected, strict=True):
        assert got.epochs == wanted.epochs
        for part in ("train_loss", "val_loss", "val_score"):
            torch.testing.assert_close(
                getattr(got.history, part), getattr(wanted.history, part), rtol=1e-4, atol=1e-4
            )
        torch.testing.assert_close(got.logits, wanted.logits, rtol=1e-3, atol=1e-3)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many numbers of each run are read, at each time; as meta tensors have none, they are made up."""
    seen: list[int] = []

    def read(*values: Tensor) -> tuple[np.ndarray, ...]:
        assert all(value.device == META for value in values)
        seen.append(len(values))
        return tuple(np.full(values[0].shape[0], 1.0 / len(seen)) for _ in values)

    monkeypatch.setattr(batch, "read", read)
    return seen


@pytest.mark.parametrize("name", ["pgnn", "mcp", "gcn", "sage", "mlp", "gat", "jknet"])
def test_an_epoch_on_a_device_reads_one_row_of_numbers(name: str, reads: list[int]) -> None:
    """The meta device has shapes and no numbers: whatever reads one, or mixes devices, fails."""
    data, configs = tiny.data(), CONFIGS[name]
    masks = tiny.masks(data.y)
    task = plap.data.Task.of(data.y)
    there = inputs.make_inputs(
        data.graph,
        data.x,
        torch.float32,
        adjacency=name in ("gcn", "jknet"),
        means=name == "sage",
        device=META,
    )
    assert there.graph.device == META
    many = Batch(there, data.y, task, configs, [masks] * len(configs))
    with OneDevice():
        for _ in range(3):
            many.train_epoch()
    assert all(value.device == META for value in many._adam.parameters)
    assert reads == [3, 3, 3]


def test_out_of_memory_halves_the_batch_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [RunConfig(max_epochs=4, seed=seed) for seed in range(5)]
    expected = train(configs)
    sizes: list[int] = []
    epoch = Batch.train_epoch

    def short_of_memory(self: Batch) -> list[int]:
        if self.epoch == 1:
            sizes.append(self.size)
        if self.size > 2 and self.epoch == 1:
            raise torch.OutOfMemoryError("out of memory")
        return epoch(self)

    monkeypatch.setattr(Batch, "train_epoch", short_of_memory)
    ended: list[int] = []
    with pytest.warns(UserWarning, match="cpu ran out of memory with 5 runs at a time; going on with 3"):
        results = train(configs, finished=lambda run, _: ended.append(run))
    assert sizes == [5, 3, 2, 1, 2]
    assert sorted(ended) == list(range(5))
    for got, wanted in zip(results, expected, strict=True):
        assert got.config == wanted.config
        torch.testing.assert_close(got.logits, wanted.logits)


def test_a_run_that_never_fits_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Batch) -> list[int]:
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(Batch, "train_epoch", never)
    with pytest.raises(plap.InputError, match="a single run does not fit into the memory of cpu"):
        train([RunConfig(max_epochs=2)])


def test_batches_follow_the_memory_of_the_device() -> None:
    configs = [RunConfig(seed=seed) for seed in range(100)]
    large = 64 * 2**20  # more than the cache of a CPU
    on_cpu = loop.make_batches(configs, [large] * 100, 40 * large)
    assert {len(members) for members in on_cpu} == {1}
    assert len(loop.make_batches(configs, [large] * 100, 40 * large, cache=None)) == 3
    assert len(loop.make_batches(configs, [large] * 100, 1000 * large, cache=None)) == 1


@pytest.mark.parametrize(
    ("device", "sentence"),
    [
        ("tpu", "device must be auto, cpu, cuda, cuda:N or mps, not 'tpu'"),
        ("cuda:7", "there is no device cuda:7: PyTorch sees 0 CUDA devices"),
        ("mps", "there is no device mps: PyTorch sees no Apple GPU"),
        ("meta", "device must be auto, cpu, cuda, cuda:N or mps, not 'meta'"),
    ],
)
def test_a_device_that_is_not_there_is_refused(device: str, sentence: str) -> None:
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(plap.InputError, match=sentence):
        choose_device(device)
    with pytest.raises(plap.InputError, match=sentence):
        train([RunConfig(max_epochs=1)], device=device)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: see plap bench gpu")
@pytest.mark.parametrize("name", CONFIGS)
def test_a_gpu_gives_the_history_of_the_cpu(name: str) -> None:
    for got, wanted in zip(
        train(CONFIGS[name], device="cuda"), train(CONFIGS[name], device="cpu"), strict=True
    ):
        torch.testing.assert_close(got.history.val_loss, wanted.history.val_loss, rtol=1e-3, atol=1e-3)
