"""The solver with penalties other than powers: stationary points, falling objectives, implicit gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import plap
import problems
from plap.kernels.dense import step, weight_matrix
from plap.penalties import MCP, SCAD, Cauchy, Geman, Huber, Penalty, Power, Welsch
from plap.solving.problem import Problem
from plap.solving.solver import ImplicitFunction, MethodName, Minimiser
from problems import PROBLEMS

PENALTIES = (MCP(0.9), SCAD(0.4), Huber(0.5), Welsch(0.8), Geman(0.7), Cauchy(0.6))
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)


@pytest.mark.parametrize(
    "method", ["lbfgs", "anderson", pytest.param("jacobi", marks=pytest.mark.long), "newton-cg"]
)
@every_penalty
def test_ends_at_a_stationary_point_and_never_climbs(penalty: Penalty, method: MethodName) -> None:
    for name, make in PROBLEMS.items():
        problem = make()
        y, info = plap.solve(problem.x, problem.graph, penalty=penalty, mu=0.3, tol=1e-8, method=method)
        # the paper's iteration is slow where ρ is not smooth, as it is for p = 1
        assert info.converged or (method == "jacobi" and penalty.unbounded), name
        assert info.convex == isinstance(penalty, Huber)
        levels = torch.tensor(info.history, dtype=torch.float64)
        assert (levels[1:] <= levels[:-1] * (1 + 1e-12)).all(), name
        start = plap.objective(problem.x, problem.x, problem.graph, mu=0.3, penalty=penalty)
        assert info.objective == pytest.approx(
            plap.objective(y, problem.x, problem.graph, mu=0.3, penalty=penalty).item(), rel=1e-9, abs=1e-12
        )
        assert info.objective <= start + 1e-12
        # a fixed point of the paper's step, with the clamp that the solver uses where ψ is unbounded
        if not penalty.unbounded and name not in problems.DEGENERATE:
            W, mu = weight_matrix(problem.graph, torch.float64), torch.tensor(0.3, dtype=torch.float64)
            torch.testing.assert_close(step(y, problem.x, W, penalty, mu), y, rtol=1e-6, atol=1e-6)


def test_the_convex_one_has_one_minimiser() -> None:
    problem = PROBLEMS["random"]()
    results = [
        plap.solve(problem.x, problem.graph, penalty=Huber(0.3), mu=0.1, tol=1e-10, method=method)[0]
        for method in ("lbfgs", "anderson", "newton-cg")
    ]
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], rtol=1e-6, atol=1e-6)


def test_p_is_short_for_a_power() -> None:
    problem = problems.fixture()
    short, info = plap.solve(problem.x, problem.graph, 1.5, 0.1)
    written, again = plap.solve(problem.x, problem.graph, penalty=Power(1.5), mu=0.1)
    assert short.equal(written)
    assert info == again
    assert info.convex


@pytest.mark.parametrize(
    ("penalty", "mu"),
    [(Huber(0.5), 0.3), (Welsch(2.0), 1.0), (Cauchy(1.5), 1.0), (Geman(2.0), 1.0)],
    ids=repr,
)
def test_gradcheck_of_the_stationary_point(penalty: Penalty, mu: float) -> None:
    graph = problems.random_graph(6, 0.6, seed=2)

    def run(x: Tensor, weight: Tensor, gamma: Tensor, mu: Tensor) -> Tensor:
        on = problems.per_entry_weight(graph, 0.5 * (weight + weight[graph_mirror]))
        return plap.solve(x, on, penalty=penalty.at(gamma), mu=mu, tol=1e-13)[0]

    graph_mirror = _mirror(graph)
    inputs = (
        problems.features(6, 2).requires_grad_(),
        graph.weight.clone().requires_grad_(),
        torch.tensor(float(penalty.parameter), dtype=torch.float64, requires_grad=True),
        torch.tensor(mu, dtype=torch.float64, requires_grad=True),
    )
    assert torch.autograd.gradcheck(run, inputs, atol=1e-5, rtol=1e-4)


def _mirror(graph: plap.Graph) -> Tensor:
    """Where the entry (j, i) is stored, for every entry (i, j)."""
    i, j = graph.receivers(), graph.indices.long()
    place = {pair: k for k, pair in enumerate(zip(i.tolist(), j.tolist(), strict=True))}
    return torch.tensor([place[b, a] for a, b in zip(i.tolist(), j.tolist(), strict=True)])


def test_an_indefinite_hessian_has_no_gradient() -> None:
    graph = plap.Graph.from_edges([(0, 1)])
    x = torch.tensor([[0.0], [2.0]], dtype=torch.float64, requires_grad=True)
    # beyond γ/√2 the slope of Welsch's ρ falls, faster than a small mu makes up for
    problem = Problem(x.detach(), graph, Welsch(1.2), 0.05, None)
    at = Minimiser(problem, graph, problem.at(x.detach()), 1.0, 1e-8, 100)
    y = ImplicitFunction.apply(x, graph.weight, 1.2, 0.05, at)  # type: ignore[no-untyped-call]
    with pytest.raises(plap.InputError, match=r"has no gradient here: .*Welsch.*Hessian is indefinite"):
        y[0, 0].backward()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"penalty": MCP(torch.tensor(-1.0))}, "gamma must be a positive finite number"),
        ({"penalty": MCP(1.0), "p": 1.5}, "p and penalty cannot both be given"),
        ({}, "p or penalty must be given"),
        ({"penalty": MCP(torch.ones(2))}, "gamma must be one number"),
    ],
)
def test_refuses_by_name(options: dict[str, object], sentence: str) -> None:
    problem = problems.fixture()
    with pytest.raises(plap.InputError, match=sentence):
        plap.solve(problem.x, problem.graph, mu=0.1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1e155, 1e160, 1e300])
@every_penalty
def test_never_claims_to_have_solved_what_overflows(penalty: Penalty, size: float) -> None:
    problem = problems.fixture()
    for gamma in (1.0, size):
        sentence = rf"x has values of up to .*e\+.*, for which .* {type(penalty).__name__}.* range of float64"
        with pytest.raises(plap.InputError, match=sentence):
            plap.solve(size * problem.x, problem.graph, penalty=penalty.at(gamma), mu=0.1)


def test_norms_that_overflow_do_not_pass_for_convergence() -> None:
    ring = plap.Graph.from_edges([(k, (k + 1) % 200) for k in range(200)])
    x, size = 1 + 0.01 * problems.features(200, 1), 2.0**509  # the sum of the squares is out of range
    expected, _ = plap.solve(x, ring, penalty=Huber(1.0), mu=0.1)
    found, info = plap.solve(size * x, ring, penalty=Huber(size), mu=0.1)
    assert info.converged
    assert info.iterations > 0
    torch.testing.assert_close(found / size, expected, atol=1e-7, rtol=0)


def test_a_penalty_without_rho_has_no_energy() -> None:
    class Bare(Penalty):
        def psi(self, nu: Tensor) -> Tensor:
            return torch.ones_like(nu)

    problem = problems.fixture()
    with pytest.raises(plap.InputError, match="penalty Bare defines no rho"):
        plap.energy(problem.x, problem.graph, penalty=Bare(1.0))
