"""Processes that train together use the Triton backend where it serves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import triton_ranks
from plap.training.pieces import train_in_pieces
from torchrun import torchrun

pytest.importorskip("triton", reason="the extra 'gpu' is not installed")


def test_two_processes_train_by_triton_as_one_does_by_the_fused_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = train_in_pieces(triton_ranks.pieces(), triton_ranks.CONFIG, device="cpu", evaluation="whole")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    torchrun(triton_ranks.__file__, str(tmp_path), processes=2)
    for rank in range(2):
        found = json.loads((tmp_path / f"rank{rank}.json").read_text())
        assert found["calls"] > 0
        for name, values in triton_ranks.history(alone).items():
            assert found["history"][name] == pytest.approx(values, rel=1e-4, abs=1e-5)
        torch.testing.assert_close(torch.tensor(found["logits"]), alone.logits, rtol=1e-4, atol=1e-5)
