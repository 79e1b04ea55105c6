"""What stands between two linear maps of many runs is what PyTorch's own modules make of each run."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from plap.nn import activation_loops, stacked_activation
from plap.nn.stacked_activation import Moments, Norm, activate, moments_of

RUNS, NODES, CHANNELS = 2, 300, 24
"""Nodes of more than two chunks, the last of which is not whole; channels of a wide and a narrow block."""
NORMS = ("batch", "batch, evaluated", "layer")


@pytest.fixture(autouse=True)
def loops_from_the_first_number_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacked_activation, "_WORTH_A_CALL", 1)


def drawn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class Arguments:
    """States with a mean far from 0, on which sums of squares would lose digits."""

    def __init__(self, nodes: int = NODES, channels: int = CHANNELS) -> None:
        self.x = (50 + drawn(RUNS, nodes, channels, seed=0)).requires_grad_()
        self.weight = drawn(RUNS, channels, seed=1).requires_grad_()
        self.bias = drawn(RUNS, channels, seed=2).requires_grad_()
        self.mask = 2 * (drawn(RUNS, nodes, channels, seed=3) > 0).double()
        self.added = drawn(RUNS, nodes, channels, seed=4).requires_grad_()

    def norm(self, kind: str) -> Norm | None:
        if kind == "none":
            return None
        if kind == "layer":
            return Norm("channels", self.weight, self.bias)
        if kind == "batch":
            return Norm("nodes", self.weight, self.bias, moments_of(self.x))
        kept = Moments(
            50 + drawn(RUNS, self.x.shape[2], seed=5), drawn(RUNS, self.x.shape[2], seed=6).exp(), False
        )
        return Norm("nodes", self.weight, self.bias, kept)

    @property
    def differentiated(self) -> list[Tensor]:
        return [self.x, self.weight, self.bias, self.added]

    def by_modules(self, kind: str, masked: bool, residual: bool) -> Tensor:
        """The same by PyTorch's functions, run by run."""
        results = []
        for run in range(RUNS):
            y, norm = self.x[run], self.norm(kind)
            if kind == "layer":
                y = torch.nn.functional.layer_norm(y, y.shape[1:], self.weight[run], self.bias[run])
            elif norm is not None:
                assert norm.moments is not None
                mean, variance = norm.moments.mean[run].clone(), norm.moments.variance[run].clone()
                training = norm.moments.of_input
                y = torch.nn.functional.batch_norm(
                    y, mean, variance, self.weight[run], self.bias[run], training
                )
            y = y.relu()
            y = y * self.mask[run] if masked else y
            results.append(y + self.added[run] if residual else y)
        return torch.stack(results)


@pytest.mark.parametrize(
    ("kind", "masked", "residual"), list(itertools.product(("none", *NORMS), (False, True), (False, True)))
)
def test_values_and_gradients_are_those_of_pytorchs_modules(kind: str, masked: bool, residual: bool) -> None:
    given = Arguments()
    mask, added = given.mask if masked else None, given.added if residual else None
    mine, theirs = activate(given.x, given.norm(kind), mask, added), given.by_modules(kind, masked, residual)
    torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-11)
    cotangent = drawn(*mine.shape, seed=7)
    slopes = [
        torch.autograd.grad(y, given.differentiated, cotangent, allow_unused=True) for y in (mine, theirs)
    ]
    for ours, expected in zip(*slopes, strict=True):
        assert (ours is None) == (expected is None)
        if ours is not None:
            torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", NORMS)
def test_gradients_by_differences(kind: str) -> None:
    given = Arguments(nodes=5, channels=8)

    def function(x: Tensor, weight: Tensor, bias: Tensor, added: Tensor) -> Tensor:
        given.x, given.weight, given.bias = x, weight, bias
        return activate(x, given.norm(kind), given.mask, added)

    # LayerNorm of 8 numbers near 50 is too curved for differences
    centred = (given.x.detach() - 50).requires_grad_()
    assert torch.autograd.gradcheck(function, (centred, *given.differentiated[1:]))


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_loops_and_pytorch_agree(kind: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Arguments()
    results = []
    for has_loops in (True, False):
        norm = given.norm(kind)
        monkeypatch.setattr(stacked_activation, "compiled_for", lambda device, has_loops=has_loops: has_loops)
        if norm is not None:
            moments = norm.moments
            if moments is not None:
                moments = Moments(moments.mean.to(dtype), moments.variance.to(dtype), moments.of_input)
            norm = Norm(norm.over, norm.weight.to(dtype), norm.bias.to(dtype), moments)
        results.append(activate(given.x.to(dtype), norm, given.mask.to(dtype), given.added.to(dtype)))
    torch.testing.assert_close(*results, rtol=1e-4 if dtype == torch.float32 else 1e-10, atol=1e-4)


def test_moments_of_numbers_far_from_zero() -> None:
    x = 1e4 + drawn(1, 1000, 8, seed=8).float()
    moments = moments_of(x)
    assert moments.mean.dtype == torch.float32
    torch.testing.assert_close(moments.mean.double(), x.double().mean(1), rtol=1e-6, atol=0)
    torch.testing.assert_close(moments.variance.double(), x.double().var(1, correction=0), rtol=1e-3, atol=0)


@pytest.mark.parametrize("kind", NORMS)
def test_what_is_not_a_number_stays_so(kind: str) -> None:
    given = Arguments()
    with torch.no_grad():
        given.x[0, 0, 0] = torch.nan
    y = activate(given.x, given.norm(kind))
    assert y[0, 0, 0].isnan()
    assert y[1].isfinite().all()


def test_infinite_states_have_pytorchs_gradient() -> None:
    x = torch.tensor([[[-torch.inf, torch.inf, *6 * [1.0]]]], requires_grad=True)
    zero, one = torch.zeros(1, 8), torch.ones(1, 8)
    y = activate(x, Norm("nodes", one, zero, Moments(zero, one - stacked_activation.EPS, of_input=False)))
    (slope,) = torch.autograd.grad(y.sum(), x)
    (expected,) = torch.autograd.grad(x.relu().sum(), x)
    torch.testing.assert_close(slope, expected)


@pytest.mark.parametrize("kind", NORMS)
def test_threads_change_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activation_loops, "_GRAIN", 1)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            given = Arguments()
            y = activate(given.x, given.norm(kind), given.mask, given.added)
            slopes = torch.autograd.grad(y.sum(), given.differentiated, allow_unused=True)
            results.append([y, *(slope for slope in slopes if slope is not None)])
    finally:
        torch.set_num_threads(before)
    for one, several in zip(*results, strict=True):
        assert one.equal(several)


@pytest.mark.parametrize("shape", [(1, 0, 8), (2, 5, 3), (1, 1, 8)])
def test_no_node_one_node_and_odd_channels(shape: tuple[int, int, int]) -> None:
    x = drawn(*shape, seed=9)
    assert activate(x).equal(x.relu())
    weight, bias = torch.ones(shape[0], shape[2]).double(), torch.zeros(shape[0], shape[2]).double()
    over_channels = activate(x, Norm("channels", weight, bias))
    torch.testing.assert_close(over_channels, torch.nn.functional.layer_norm(x, shape[2:]).relu())


def test_16_bits_are_left_to_pytorch() -> None:
    x, one = drawn(1, 300, 8, seed=10).bfloat16(), torch.ones(1, 8, dtype=torch.bfloat16)
    expected = torch.nn.functional.layer_norm(x, (8,)).relu()
    torch.testing.assert_close(activate(x, Norm("channels", one, torch.zeros_like(one))), expected)
