"""How far a trained model's accuracy falls when an adversary who knows it changes edges."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.checks import check_flag, check_integer, check_number
from plap.data.sampling import generator, rank_pairs, sample_absent_pairs, unrank_pairs
from plap.data.tasks import Task
from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import as_members, check_features, evaluating, members_of
from plap.nn.linear import Features
from plap.sparse import tensor_from_scipy
from plap.split_masks import SplitLike
from plap.training import RunConfig, train_ensemble
from plap.training.modules import seeded

_BLOCK = 20_000
"""Pairs of nodes that the attack considers at a time; more where it may change more edges."""

Retrain = Callable[[Graph], torch.nn.Module | Sequence[torch.nn.Module]]
"""Retrains the members on another graph."""


@dataclass(frozen=True)
class AttackPoint:
    """The accuracy after one attack, and after as many random changes."""

    budget: float
    """Changed edges as a share of all edges; of the edges of a node for an attack on single nodes."""
    changed: int | float
    """Edges that were added or removed; on average where single nodes were attacked."""
    accuracy: float
    random: float
    """Accuracy after as many random edges were added as the attack changed."""


@dataclass(frozen=True)
class AttackCurve:
    """How the accuracy falls with the budget of an adversary."""

    nodes: int
    """Number of nodes that were attacked and judged."""
    clean: float
    """Accuracy before any attack; of a model that is trained again where ``poisoning``."""
    points: tuple[AttackPoint, ...]
    poisoning: bool
    """Whether the model was retrained on each attacked graph."""
    local: bool
    """Whether each node was attacked on its own."""


def attack_curve(
    members: torch.nn.Module | Sequence[torch.nn.Module],
    x: Features,
    graph: Graph,
    y: Tensor,
    nodes: Tensor,
    budgets: float | Iterable[float] = (0.01, 0.025, 0.05, 0.1),
    *,
    local: bool = False,
    retrain: Retrain | None = None,
    task: Task | None = None,
    steps: int = 60,
    seed: int = 0,
) -> AttackCurve:
    """Attack the edges of a graph with growing budgets, by the gradient of the model in the edge weights.

    The attack is :func:`adaptive_attack`. It knows the model, all features and the labels of the nodes that
    it attacks, and comes after training (evasion); with ``retrain`` the model is retrained on each
    attacked graph, which the attacker, who knows only the first model, did before (poisoning by transfer).

    Parameters
    ----------
    members : module, or a sequence of modules
        An ensemble, such as :func:`plap.insight.load_members` gives; its mean probabilities are attacked.
        Each is called as ``module(x, graph)`` with a :class:`plap.Graph`, whose weights have a gradient.
    x : Tensor or sparse matrix, shape [N, F]
    graph : Graph
        Without weights.
    y : Tensor, int64, shape [N]
    nodes : Tensor, boolean, shape [N]
        The nodes whose predictions are attacked and judged, such as the test nodes.
    budgets : float, or a collection of float
        Share of the edges that may be changed; with ``local`` share of the edges of the attacked node. At
        least one pair of nodes is always left as it is.
    local : bool
        Attack each of the nodes alone, by edges of its own and with all else unchanged, instead of all at
        once.
    retrain : function of a graph, optional
        Returns new members, or a single one.
    task : Task, optional
        Calibrates the mean probabilities and decides which class they speak for, as in the predictions of a
        fit; by default the most probable one.
    steps : int
        Steps of the attack.
    seed : int
        Random seed for the pairs that the attack looks at, and for the random edges beside it.
    """
    members, labels = as_members(members), _checked_labels(x, graph, y)
    if not isinstance(nodes, Tensor) or nodes.dtype != torch.bool or nodes.shape != (graph.num_nodes,):
        raise InputError(f"nodes must be a boolean mask of the {graph.num_nodes} nodes")
    _check_unweighted(graph)
    shares = _checked_budgets(budgets, most=None if check_flag("local", local) else 1)
    steps, seed = check_integer("steps", steps, 2), check_integer("seed", seed, 0)
    if not bool(nodes.any()):
        raise InputError("nodes must contain at least one node to attack")
    if local and retrain is not None:
        raise InputError("poisoning is for an attack on all nodes at once, not on single nodes")
    if retrain is not None and not callable(retrain):
        raise InputError(f"retrain must be a function of a graph, not {type(retrain).__name__}")
    targets = _checked_targets(nodes.nonzero().squeeze(1), labels)
    judge = _Judge(x, labels, task)
    clean = judge.accuracy(members, graph, targets)
    if retrain is not None:
        # a model that was trained in another way, such as in pieces, is not what this is compared with
        clean = judge.accuracy(_retrained(retrain, graph), graph, targets)
    points = []
    for share in shares:
        if local:
            degrees = torch.diff(graph.indptr)[targets].tolist()
            counts = [min(_count(share, degree), graph.num_nodes - 2) for degree in degrees]
            found = [
                judge.attacked(members, graph, target.reshape(1), count, clean, None, steps, seed, local)
                for target, count in zip(targets, counts, strict=True)
            ]
            changed, right, random = np.array(found, dtype=float).mean(0)
        else:
            count = min(_count(share, graph.num_edges), _num_pairs(graph) - 1)
            changed, right, random = judge.attacked(
                members, graph, targets, count, clean, retrain, steps, seed, local
            )
        mean = float(changed) if local else round(changed)
        points.append(AttackPoint(share, mean, float(right), float(random)))
    return AttackCurve(targets.numel(), clean, tuple(points), retrain is not None, local)


def retraining(
    config: RunConfig | Sequence[RunConfig],
    x: Features,
    y: Tensor,
    split: SplitLike,
    members: int,
    task: Task | None = None,
) -> Callable[[Graph], list[torch.nn.Module]]:
    """For ``retrain`` of :func:`attack_curve`: retrains as many members of the same configuration.

    Parameters
    ----------
    config : RunConfig, or several, in turn
        Its seed is that of the first member.
    x, y, split, task :
        As for :func:`plap.training.train_ensemble`.
    members : int
    """

    def retrain(graph: Graph) -> list[torch.nn.Module]:
        ensemble = train_ensemble(graph, x, y, split, config, members, task=task)
        return members_of(ensemble.runs, x.shape[1], ensemble.task.num_outputs)

    return retrain


def adaptive_attack(
    members: torch.nn.Module | Sequence[torch.nn.Module],
    x: Features,
    graph: Graph,
    y: Tensor,
    nodes: Tensor,
    count: int,
    *,
    at: int | None = None,
    steps: int = 60,
    seed: int = 0,
) -> Graph:
    """The graph after an attack that adds or removes at most ``count`` edges.

    Projected randomised block coordinate descent (Geisler et al., NeurIPS 2021) as PyG has it
    (``torch_geometric.contrib``): edges are relaxed to weights between 0 and 1, and the gradient of the mean
    tanh margin of the attacked nodes says which pairs to join or part. Weights of a layer that are constants
    in training are differentiated here. The best discrete graph that was met is returned.

    Parameters
    ----------
    members, x, graph, y, steps, seed :
        As for :func:`attack_curve`.
    nodes : Tensor, int64
        Indices of the nodes whose predictions are attacked.
    count : int, at least 1
    at : int, optional
        Change edges of this node only: all its pairs are looked at in every step, instead of a random block
        of all pairs of nodes that changes from step to step.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.5, n=60, f=5, seed=1)
    >>> model = plap.nn.PGNN(5, 8, 2)
    >>> attacked = adaptive_attack([model], data.x, data.graph, data.y, torch.arange(20), count=3, steps=4)
    >>> attacked.num_nodes
    60
    """
    members, y = as_members(members), _checked_labels(x, graph, y)
    nodes = _checked_targets(nodes, y)
    count, steps = check_integer("count", count, 1), check_integer("steps", steps, 2)
    at = None if at is None else check_integer("at", at, 0, graph.num_nodes - 1)
    seed = check_integer("seed", seed, 0)
    if not isinstance(x, Tensor):
        x = tensor_from_scipy(scipy.sparse.csr_array(x), torch.get_default_dtype())
    _check_unweighted(graph)
    pairs = graph.num_nodes - 1 if at is not None else _num_pairs(graph)
    if count >= pairs:
        raise InputError(f"count must be less than the {pairs} pairs of nodes, not {count}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that contrib is experimental
        from torch_geometric.contrib.nn import PRBCDAttack  # noqa: PLC0415
    block = min(max(_BLOCK, 4 * count), 2 * pairs)
    kind = PRBCDAttack if at is None else _at_one_node(PRBCDAttack, at)
    # the caller may have turned gradients off, as one does around an evaluation
    with torch.inference_mode(mode=False), torch.enable_grad(), seeded(seed):
        y, nodes = y.clone(), nodes.clone()  # of inference mode they could not be saved for a backward pass
        attack = kind(
            _Ensemble(members, y, nodes), block_size=block, epochs=steps,
            epochs_resampling=max(1, steps * 3 // 4), loss="tanh_margin", log=False,
        )  # fmt: skip
        try:
            edges, _ = attack.attack(x, graph.edge_index, y, count, idx_attack=nodes)
        except RuntimeError as error:
            if "used in the graph" not in str(error) and "does not require grad" not in str(error):
                raise
            names = " and ".join(sorted({type(member).__name__ for member in members}))
            raise InputError(f"{names} does not weigh edges, so it has no gradient to attack by") from None
    return Graph.from_edge_index(edges, num_nodes=graph.num_nodes)


def _checked_labels(x: Features, graph: Graph, y: Tensor) -> Tensor:
    """The labels if all three have the same nodes."""
    check_features(x, graph)
    nodes = graph.num_nodes
    if not isinstance(y, Tensor) or y.dtype != torch.int64 or y.shape != (nodes,):
        raise InputError(f"y must be an int64 tensor with the class of each of the {nodes} nodes")
    return y


def _checked_targets(nodes: Tensor, y: Tensor) -> Tensor:
    """The numbers of nodes to attack if there are any and their labels are known."""
    if not isinstance(nodes, Tensor) or nodes.dtype != torch.int64 or nodes.ndim != 1 or not nodes.numel():
        raise InputError("nodes must be an int64 tensor with the numbers of at least one node to attack")
    outside = nodes[(nodes < 0) | (nodes >= y.shape[0])]
    if outside.numel():
        raise InputError(f"nodes has {int(outside[0])}, but there are only the nodes 0 to {y.shape[0] - 1}")
    unknown = nodes[y[nodes] < 0]
    if unknown.numel():
        raise InputError(f"the label of node {int(unknown[0])} is unknown, so nodes must not contain it")
    return nodes


def _check_unweighted(graph: Graph) -> None:
    if graph.is_weighted or graph.num_self_loops:
        raise InputError(
            "an attack changes which nodes are joined: graph must have neither weights nor loops"
        )


def _checked_budgets(budgets: Any, most: float | None) -> list[float]:
    """Budgets as numbers; a single number is one budget."""
    single = isinstance(budgets, str) or not isinstance(budgets, Iterable)
    if single or (isinstance(budgets, Tensor | np.ndarray) and not budgets.ndim):
        return [check_number("budgets", budgets, above=0, most=most)]
    return [check_number(f"budgets[{k}]", each, above=0, most=most) for k, each in enumerate(budgets)]


def _retrained(retrain: Retrain, graph: Graph) -> list[torch.nn.Module]:
    return as_members(retrain(graph), "what retrain returns")


def _at_one_node(attack: type[Any], node: int) -> type[Any]:
    """PyG's attack with all pairs of one node in the place of a random block."""

    class AtOneNode(attack):  # type: ignore[misc]
        def _sample_random_block(self, budget: int = 0) -> None:
            others = torch.arange(self.num_nodes - 1, device=self.device)
            others += others >= node
            ends = torch.stack([others, torch.full_like(others, node)])
            self.current_block, self.block_edge_index = others, ends.sort(0).values
            self.block_edge_weight = torch.full(others.shape, self.coeffs["eps"], device=self.device)

        def _resample_random_block(self, budget: int) -> None:
            """There is nothing else to look at."""

    return AtOneNode


class _Ensemble(torch.nn.Module):
    """Log of the members' mean probabilities, differentiable in the weights of edges."""

    def __init__(self, members: Sequence[torch.nn.Module], y: Tensor, targets: Tensor) -> None:
        super().__init__()
        self.y, self.targets = y, targets
        self.members = torch.nn.ModuleList(copy.deepcopy(member) for member in members)
        for module in self.members.modules():
            if hasattr(module, "detach_weights"):
                setattr(module, "detach_weights", False)  # noqa: B010  (mypy knows no such field of a module)

    def forward(self, x: Features, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        kept = edge_weight.detach() > 0
        graph = Graph.from_edge_index(edge_index[:, kept], edge_weight[kept], x.shape[0])
        each = [_probabilities(member, x, graph, self.y, self.targets) for member in self.members]
        return torch.stack(each).mean(0).clamp(min=1e-12).log()


def _probabilities(member: torch.nn.Module, x: Features, graph: Graph, y: Tensor, targets: Tensor) -> Tensor:
    """Probabilities of the classes, [N, C], if the member has an output for each class of the targets."""
    logits: Tensor = member(x, graph)
    name, outputs = type(member).__name__, logits.shape[1] if logits.ndim == 2 else 1
    if outputs < 2:
        raise InputError(f"{name} must have an output per class and at least two, not {outputs}")
    beyond = targets[y[targets] >= outputs]
    if beyond.numel():
        node = int(beyond[0])
        raise InputError(f"node {node} has the class {int(y[node])}, but {name} has only {outputs} outputs")
    return logits.softmax(1)


@dataclass(frozen=True)
class _Judge:
    """How good members are on a graph, and on what an adversary makes of it."""

    x: Features
    y: Tensor
    task: Task | None

    def accuracy(self, members: Sequence[torch.nn.Module], graph: Graph, targets: Tensor) -> float:
        """Accuracy at the targets."""
        total: Tensor | None = None
        for member in members:
            with evaluating(member):
                probabilities = _probabilities(member, self.x, graph, self.y, targets)
            total = probabilities if total is None else total + probabilities
        assert total is not None
        mean = total[targets] / len(members)
        decided = mean.argmax(1) if self.task is None else self.task.decode(self.task.calibrated(mean))
        return float((decided == self.y[targets]).double().mean())

    def attacked(
        self, members: Sequence[torch.nn.Module], graph: Graph, targets: Tensor, count: int, clean: float,
        retrain: Retrain | None, steps: int, seed: int, local: bool,
    ) -> tuple[float, float, float]:  # fmt: skip
        """Edges changed, accuracy after the attack, accuracy after as many random edges."""
        if count <= 0:
            clean = self.accuracy(members, graph, targets) if local else clean
            return 0.0, clean, clean
        at = int(targets) if local else None
        x, y = self.x, self.y
        attacked = adaptive_attack(members, x, graph, y, targets, count, at=at, steps=steps, seed=seed)
        changed = changed_edges(graph, attacked)
        noisy = with_random_edges(graph, changed, seed, at=targets if local else None)
        right, random = (
            self.accuracy(_retrained(retrain, g) if retrain else members, g, targets)
            for g in (attacked, noisy)
        )
        return float(changed), right, random


def _num_pairs(graph: Graph) -> int:
    return graph.num_nodes * (graph.num_nodes - 1) // 2


def _count(share: float, edges: int) -> int:
    return int(share * edges + 0.5)


def changed_edges(before: Graph, after: Graph) -> int:
    """Number of edges that only one of two graphs has.

    Examples
    --------
    >>> import plap
    >>> changed_edges(plap.Graph.from_edges([(0, 1), (1, 2)]), plap.Graph.from_edges([(0, 1), (0, 2)]))
    2
    """
    return int(np.setxor1d(_ranks(before), _ranks(after)).size)


def with_random_edges(graph: Graph, count: int, seed: int = 0, *, at: Tensor | None = None) -> Graph:
    """The graph with ``count`` more edges between random nodes that were not joined.

    Parameters
    ----------
    graph : Graph
        Without weights.
    count : int
    seed : int
    at : Tensor, int64, shape [1], optional
        A node that all of them join to another; fewer edges if it has not as many others.
    """
    rng, ranks, n = generator(seed), _ranks(graph), graph.num_nodes
    if at is None:
        free = n * (n - 1) // 2 - ranks.size
        added = np.stack(unrank_pairs(sample_absent_pairs(rng, n, ranks, min(count, free))))
    else:
        node = int(at)
        near = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].numpy()
        others = np.setdiff1d(np.arange(n), [*near, node])
        others = rng.permutation(others)[:count]
        added = np.stack([np.full_like(others, node), others])
    ends = torch.cat([graph.edge_index, torch.from_numpy(added), torch.from_numpy(added[::-1].copy())], dim=1)
    return Graph.from_edge_index(ends, num_nodes=n)


def _ranks(graph: Graph) -> np.ndarray:
    """A number for each edge, ascending."""
    ends = graph.edge_index[:, graph.edges_once()].numpy()
    return np.sort(rank_pairs(ends.min(0), ends.max(0)))
