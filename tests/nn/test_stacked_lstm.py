"""The LSTMs of many runs at once are PyG's ``JumpingKnowledge``, run by run."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import JumpingKnowledge

from plap.nn import stacked_lstm
from plap.nn.stacked_lstm import Weights, attended, cell


def draws(*shape: int, seed: int = 0) -> Tensor:
    drawn = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return drawn.requires_grad_()


def weights_of(modules: list[JumpingKnowledge]) -> Weights:
    def both(name: str) -> Tensor:
        ways = (name, f"{name}_reverse")
        return torch.stack([module.get_parameter(f"lstm.{way}") for way in ways for module in modules])

    attention = torch.stack([module.att.weight for module in modules]).transpose(1, 2)
    return Weights(
        both("weight_ih_l0").transpose(1, 2),
        both("weight_hh_l0").transpose(1, 2),
        (both("bias_ih_l0") + both("bias_hh_l0")).unsqueeze(1),
        torch.cat(attention.chunk(2, 1)),
    )


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("channels", [5, 8], ids=["any width", "a multiple of the lanes"])
def test_every_run_is_pygs_module(layers: int, channels: int) -> None:
    modules = [JumpingKnowledge("lstm", channels, 4).double() for _ in range(3)]
    xs = [draws(3, 11, channels, seed=k) for k in range(layers)]
    mine = attended(xs, weights_of(modules))
    theirs = torch.stack([module([x[run] for x in xs]) for run, module in enumerate(modules)])
    torch.testing.assert_close(mine, theirs)
    leaves = [*xs, *(value for module in modules for value in module.lstm.parameters())]
    slopes = [
        torch.autograd.grad(result, leaves, draws(*mine.shape, seed=9), materialize_grads=True)
        for result in (mine, theirs)
    ]
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("begun", [False, True])
def test_compiled_and_plain_cells_agree(begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gates, state = draws(2, 300, 64 if begun else 48), draws(2, 300, 16, seed=1) if begun else None
    compiled = cell(gates, state)
    monkeypatch.setattr(stacked_lstm, "compiled_for", lambda device: False)
    for mine, plain in zip(compiled, cell(gates, state), strict=True):
        torch.testing.assert_close(mine, plain)


def test_gradients_by_differences() -> None:
    gates, state = draws(2, 3, 32), draws(2, 3, 8, seed=1)
    assert torch.autograd.gradcheck(cell, (gates, state))
    assert torch.autograd.gradcheck(lambda given: cell(given, None), (draws(2, 3, 24),))


def test_large_gates_do_not_overflow() -> None:
    gates = 1e4 * draws(1, 4, 32).detach().float().requires_grad_()
    output, state = cell(gates, torch.ones(1, 4, 8))
    assert torch.isfinite(output).all()
    assert torch.autograd.grad(output.sum() + state.sum(), gates)[0].isfinite().all()
