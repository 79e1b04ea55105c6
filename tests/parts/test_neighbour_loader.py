from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch_geometric.typing as backends

import plap
from plap.errors import InputError
from plap.parts import neighbour_loader

INSTALLED = backends.WITH_PYG_LIB or backends.WITH_TORCH_SPARSE


def test_without_a_backend_the_alternative_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "WITH_PYG_LIB", False)
    monkeypatch.setattr(backends, "WITH_TORCH_SPARSE", False)
    with pytest.raises(InputError, match=r"pyg-lib or torch-sparse.*METIS parts.*plap\.parts\.PartLoader"):
        neighbour_loader(plap.data.csbm(phi=0.5, n=20, f=3), [5])


@pytest.mark.parametrize("sparse", [False, True])
def test_the_loader_holds_the_whole_data_set(monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    monkeypatch.setattr(backends, "WITH_PYG_LIB", True)  # making a loader samples nothing yet
    data = plap.data.csbm(phi=0.5, n=60, f=3)
    if sparse:
        data = replace(data, x=data.x.to_sparse_csr())
    wanted = torch.arange(0, 60, 2)
    loader = neighbour_loader(data, [5, -1], nodes=wanted, batch_size=7, shuffle=True)
    assert len(loader) == 5
    assert torch.equal(loader.data.edge_index, data.graph.edge_index)
    assert torch.equal(loader.data.y, data.y)
    assert loader.data.num_nodes == 60
    assert ("x" in loader.data) == (not sparse)


@pytest.mark.skipif(not INSTALLED, reason="neither pyg-lib nor torch-sparse is installed")
def test_batches_start_with_the_wanted_nodes() -> None:
    data = plap.data.csbm(phi=0.5, n=60, f=3)
    model = plap.nn.PGNN(3, 4, 2, K=2).eval()
    whole = model(data.x, data.graph)
    for batch in neighbour_loader(data, [-1, -1, -1], batch_size=10):
        logits = model(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]
        torch.testing.assert_close(logits, whole[batch.n_id[: batch.batch_size]])
