"""Derivatives of the minimiser against finite differences and against what theory says of them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import plap
import problems


def minimiser(x: Tensor, graph: plap.Graph, p: float | Tensor, mu: float | Tensor) -> Tensor:
    y, info = plap.solve(x, graph, p, mu, tol=1e-12, eps=1e-9)
    assert info.converged
    return y


def scalar(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("name", ["fixture", "isolated_node", "self_loop"])
@pytest.mark.parametrize("p", [1.2, 1.5, 2.0, 2.5, 3.0])
def test_x_mu_and_p_against_finite_differences(name: str, p: float) -> None:
    given = problems.PROBLEMS[name]()
    x = given.x.clone().requires_grad_()

    def function(x: Tensor, p: Tensor, mu: Tensor) -> Tensor:
        return minimiser(x, given.graph, p, mu)

    assert torch.autograd.gradcheck(function, (x, scalar(p), scalar(0.7)), atol=1e-6)


def test_p_at_2_is_the_limit_from_both_sides() -> None:
    given = problems.fixture()
    slopes = []
    for value in (2 - 1e-5, 2.0, 2 + 1e-5):
        p = scalar(value)
        minimiser(given.x, given.graph, p, 0.3).square().sum().backward()
        slopes.append(float(p.grad))  # type: ignore[arg-type]
    assert abs(slopes[1]) > 1e-2
    assert slopes == pytest.approx([slopes[1]] * 3, rel=1e-4)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_edge_weights_against_finite_differences(p: float) -> None:
    edge_index = torch.tensor([[0, 1, 2, 2, 1], [1, 2, 3, 0, 1]])
    weight = torch.tensor([1.0, 2.0, 0.5, 1.5, 0.8], dtype=torch.float64, requires_grad=True)
    x = problems.features(5, 2, seed=6)

    def function(w: Tensor) -> Tensor:
        graph = plap.Graph.from_edge_index(edge_index, w, num_nodes=5, self_loops="keep")
        return minimiser(x, graph, p, 0.4)

    assert torch.autograd.gradcheck(function, (weight,), atol=1e-6)


def test_clamped_edges_against_finite_differences() -> None:
    """With an eps so large that some edge norms lie below it and some above."""
    pairs = torch.tensor([[0, 1, 2, 2, 3], [1, 2, 3, 0, 4]])
    weight = torch.tensor([1.0, 2.0, 0.5, 1.5, 0.8], dtype=torch.float64, requires_grad=True)
    x, eps = problems.features(5, 2, seed=6).requires_grad_(), 0.5

    def function(x: Tensor, w: Tensor, p: Tensor, mu: Tensor) -> Tensor:
        graph = plap.Graph.from_edge_index(pairs, w)
        return plap.solve(x, graph, p, mu, tol=1e-12, eps=eps)[0]

    inputs = (x, weight, scalar(1.3), scalar(0.7))
    norms = plap.gradient(function(*inputs), plap.Graph.from_edge_index(pairs, weight)).norm(dim=1)
    assert 2 < int((norms < eps).sum()) < norms.numel() - 2
    assert float((norms - eps).detach().abs().min()) > 1e-3
    assert torch.autograd.gradcheck(function, inputs, atol=1e-6)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_jacobian_is_that_of_a_proximal_map(p: float) -> None:
    """dF*/dX is symmetric with eigenvalues in (0, 1]."""
    given = problems.fixture()
    jacobian = torch.autograd.functional.jacobian(
        lambda x: plap.solve(x, given.graph, p, 0.3, tol=1e-11)[0], given.x
    )
    matrix = jacobian.reshape(given.x.numel(), -1)
    torch.testing.assert_close(matrix, matrix.T, rtol=0, atol=1e-8)
    values = torch.linalg.eigvalsh(matrix)
    assert float(values.min()) > 0
    assert float(values.max()) <= 1 + 1e-9


@pytest.mark.parametrize("method", ["lbfgs", "anderson", "jacobi", "newton-cg"])
def test_derivatives_do_not_depend_on_the_method(method: str) -> None:
    given = problems.PROBLEMS["grid"]()
    slopes = []
    for name in (method, "auto"):
        x, p, mu = given.x.clone().requires_grad_(), scalar(1.5), scalar(0.7)
        y, _ = plap.solve(x, given.graph, p, mu, tol=1e-11, method=name)  # type: ignore[arg-type]
        slopes.append(torch.autograd.grad(y.sin().sum(), [x, p, mu]))
    for got, wanted in zip(*slopes, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("p", [1.5, 2.0, 2.5])
def test_many_steps_of_the_paper_s_iteration_have_the_same_derivatives(p: float) -> None:
    given = problems.PROBLEMS["random"]()
    slopes = []
    for unrolled in (False, True):
        x, q, mu = given.x.clone().requires_grad_(), scalar(p), scalar(2.0)
        weight = given.graph.weight.clone().requires_grad_()
        graph = problems.per_entry_weight(given.graph, weight)
        y = plap.propagate(x, graph, q, mu, 300, backend="torch") if unrolled else minimiser(x, graph, q, mu)
        slope = torch.autograd.grad(y.sin().sum(), [x, weight, q, mu])
        both = torch.zeros(len(x), len(x)).double()
        both[given.graph.receivers(), given.graph.indices.long()] = slope[1]
        slopes.append((slope[0], both + both.T, slope[2], slope[3]))  # an edge has two entries
    for got, wanted in zip(*slopes, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", list(problems.PROBLEMS))
@pytest.mark.parametrize("p", problems.P_VALUES)
def test_derivatives_are_finite_everywhere(name: str, p: float) -> None:
    given = problems.PROBLEMS[name]()
    x, q, mu = given.x.clone().requires_grad_(), scalar(p), scalar(0.3)
    weight = given.graph.weight.clone().requires_grad_()
    y, _ = plap.solve(x, problems.per_entry_weight(given.graph, weight), q, mu)
    for slope in torch.autograd.grad(y.square().sum(), [x, weight, q, mu]):
        assert bool(torch.isfinite(slope).all())


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_zero_features_have_derivatives_too(p: float) -> None:
    x = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    y, info = plap.solve(x, problems.fixture().graph, p, 0.3)
    assert info.converged
    (slope,) = torch.autograd.grad(y, x, problems.fixture_cotangent())
    if p == 3.0:  # the energy is flat there, so nothing moves but with its own x
        torch.testing.assert_close(slope, problems.fixture_cotangent())
    else:
        assert bool(torch.isfinite(slope).all())
        assert float(slope.norm()) < float(problems.fixture_cotangent().norm())


@pytest.mark.parametrize("c", [1e-6, 1e8])
def test_derivatives_obey_the_scaling_law(c: float) -> None:
    """F*(cx; p, mu c^(p−2)) = c F*(x; p, mu), so x̄ is the same and mū is c^(3−p) times as large."""
    given = problems.fixture()
    slopes = []
    for scale in (1.0, c):
        x, mu = (scale * given.x).requires_grad_(), scalar(0.3 * scale ** (1.5 - 2))
        y, _ = plap.solve(x, given.graph, 1.5, mu, tol=1e-11)
        slope = torch.autograd.grad(y, [x, mu], problems.fixture_cotangent())
        slopes.append((slope[0], slope[1] * scale ** (1.5 - 3)))
    for got, wanted in zip(*slopes, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-7, atol=1e-9)


def test_only_what_is_asked_for_and_in_its_own_type() -> None:
    given = problems.fixture()
    x = given.x.float().requires_grad_()
    mu = torch.tensor(0.3, requires_grad=True)
    y, _ = plap.solve(x, given.graph, 1.5, mu)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert x.grad is not None
    assert mu.grad is not None
    assert (x.grad.dtype, mu.grad.dtype, mu.grad.shape) == (torch.float32, torch.float32, ())
    plain, _ = plap.solve(given.x, given.graph, torch.tensor(1.5), torch.tensor(0.3))
    assert not plain.requires_grad
    with torch.no_grad():
        assert not plap.solve(x, given.graph, 1.5, mu)[0].requires_grad
    one_channel = given.x[:, 0].clone().requires_grad_()
    plap.solve(one_channel, given.graph, 1.5, 0.3)[0].sum().backward()
    assert one_channel.grad is not None
    assert one_channel.grad.shape == (4,)


def test_learning_mu_and_p_finds_what_made_the_data() -> None:
    given = problems.fixture()
    target = minimiser(given.x, given.graph, 1.7, 0.5)
    log_mu, p = scalar(0.0), scalar(2.3)
    optimiser = torch.optim.LBFGS([log_mu, p], max_iter=40, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        y, _ = plap.solve(given.x, given.graph, p, log_mu.exp(), tol=1e-9)
        value = (y - target).square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    assert p.item() == pytest.approx(1.7, abs=1e-3)
    assert log_mu.exp().item() == pytest.approx(0.5, abs=1e-3)


def test_a_loss_that_is_nan_does_not_become_a_zero_gradient() -> None:
    given = problems.fixture()
    x = given.x.clone().requires_grad_()
    y, _ = plap.solve(x, given.graph, 1.5, 0.3)
    (slope,) = torch.autograd.grad(y, x, torch.full_like(y, math.nan))
    assert bool(slope.isnan().all())


def test_says_when_the_linear_system_was_given_up() -> None:
    given = problems.PROBLEMS["grid"]()
    x = given.x.clone().requires_grad_()
    y, _ = plap.solve(x, given.graph, 1.5, 0.01, max_iter=2)
    with pytest.warns(RuntimeWarning, match="the derivative of plap.solve is inexact"):
        y.sum().backward()


def test_second_derivatives_and_transforms_are_refused_not_wrong() -> None:
    given = problems.fixture()
    x = given.x.clone().requires_grad_()
    y, _ = plap.solve(x, given.graph, 1.5, 0.3)
    (slope,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()

    def loss(x: Tensor) -> Tensor:
        return plap.solve(x, given.graph, 1.5, 0.3)[0].square().sum()

    with pytest.raises(NotImplementedError, match=r"torch\.func"):
        torch.func.grad(loss)(given.x)
    with pytest.raises(NotImplementedError, match=r"torch\.func"):
        torch.func.vmap(loss)(torch.stack([given.x, given.x]))
    with pytest.raises(NotImplementedError, match=r"torch\.func"):
        torch.func.grad(lambda mu: plap.solve(given.x, given.graph, 1.5, mu)[0].sum())(torch.tensor(0.3))
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="forward mode"):
        loss(torch.autograd.forward_ad.make_dual(given.x, given.x))
