"""A graph in pieces: which nodes go into which step, and the pieces cut out of the graph."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from plap.checks import check_integer
from plap.data.dataset import features_digest
from plap.data.tasks import Task, training_task
from plap.errors import InputError
from plap.graph import Graph
from plap.nn.linear import Features
from plap.parts import PartLoader, Subgraph, induced, partition, with_halo
from plap.split_masks import SplitLike
from plap.training.inputs import make_inputs
from plap.training.modules import Halo


@dataclass(frozen=True, eq=False)
class Piece:
    """A graph that a model is called on, and those of its nodes whose predictions are wanted."""

    graph: Graph
    x: Tensor
    """[M, F], dense or sparse CSR."""
    rows: Tensor
    """Wanted nodes, int64 [T], numbered as in ``graph``."""
    nodes: Tensor
    """The same, numbered as in the whole graph."""
    labels: Tensor
    """[T], or [T, L] for several labels per node."""
    weighted: bool
    """Whether the whole graph is weighted: a model is called in the same way on all pieces."""

    def to(self, device: torch.device | str) -> Piece:
        """The piece on another device; sparse features become dense on the way to a GPU.

        On a GPU, the transpose that sparse features need in the backward pass would be computed on the host,
        once per piece; the dense rows of one piece are small.
        """
        if torch.device(device) == self.graph.device:
            return self
        x = self.x.to(device)
        return replace(
            self,
            graph=self.graph.to(device),
            x=x if x.layout == torch.strided else x.to_dense(),
            rows=self.rows.to(device, non_blocking=True),
            nodes=self.nodes.to(device, non_blocking=True),
            labels=self.labels.to(device, non_blocking=True),
        )


class Share(NamedTuple):
    """The nodes of a piece that is yet to be cut out."""

    number: int
    """Position among the pieces of an epoch."""
    nodes: Tensor
    labelled: int
    """How many of them are training nodes."""


class Pieces:
    """The steps of training on parts of one graph, or on the graphs of a collection.

    A piece is the graph on the nodes of ``parts_per_batch`` parts drawn at random, and a step takes
    ``pieces_per_step`` pieces. The pieces of a step depend only on the seed and the number of the epoch, so
    any number of processes takes the same steps, and so does training that was resumed.

    Parameters
    ----------
    graph, x, y, split, num_classes, task :
        As for :func:`plap.training.train_runs`.
    part : Tensor, shape [N], integer
        The part of every node.
    parts_per_batch : int
        More parts mix the classes better and keep more edges; fewer need less memory.
    pieces_per_step : int
        At most this many processes can share the work of a step.
    seed : int
    training_part : Tensor, shape [N], integer, optional
        ``part`` with a negative number for nodes that are not used in training.

    Examples
    --------
    >>> from plap.data import csbm, split
    >>> data = csbm(phi=0.5, n=100, f=20, seed=1)
    >>> pieces = Pieces.of_parts(data.graph, data.x, data.y, split(data), 8, parts_per_batch=2, cache=False)
    >>> [len(step) for step in pieces.steps(epoch=0)]
    [1, 1, 1, 1]
    """

    def __init__(
        self,
        graph: Graph,
        x: Features,
        y: Tensor,
        split: SplitLike,
        part: Tensor,
        *,
        parts_per_batch: int = 1,
        pieces_per_step: int = 1,
        seed: int = 0,
        num_classes: int | None = None,
        task: Task | None = None,
        training_part: Tensor | None = None,
    ) -> None:
        self.task = training_task(y, [split], graph.num_nodes, num_classes, task)
        """What is predicted; ``task.num_outputs`` is the width of the model's output."""
        self.graph, self.y, self.split = graph, y, split
        self.weighted = graph.is_weighted
        self.x = make_inputs(graph, x, torch.float32, adjacency=False).matrix
        self.pieces_per_step = check_integer("pieces_per_step", pieces_per_step, 1)
        self._part = part
        self._all = PartLoader(graph, part, parts_per_batch, seed)
        trained = part if training_part is None else training_part
        self._training = PartLoader(graph, trained, parts_per_batch, seed)

    @classmethod
    def of_parts(
        cls, graph: Graph, x: Features, y: Tensor, split: SplitLike, parts: int, *, seed: int = 0,
        cache: Any = True, **options: Any,
    ) -> Pieces:  # fmt: skip
        """Pieces of METIS parts; see :func:`plap.parts.partition` for ``parts`` and ``cache``."""
        return cls(graph, x, y, split, partition(graph, parts, seed, cache=cache), seed=seed, **options)

    @classmethod
    def of_graphs(
        cls, graph: Graph, x: Features, y: Tensor, split: SplitLike, graph_of_node: Tensor, **options: Any
    ) -> Pieces:
        """Pieces that are whole graphs of a disjoint union, so that no edge is lost.

        Graphs without training nodes are not used in training.
        """
        if graph_of_node.shape != (graph.num_nodes,) or graph_of_node.dtype.is_floating_point:
            raise InputError(
                f"graph_of_node must contain one integer for each of the {graph.num_nodes} nodes"
            )
        trained = torch.isin(graph_of_node, graph_of_node[split.train])
        left_out = torch.where(trained, graph_of_node, -1)
        return cls(graph, x, y, split, graph_of_node, training_part=left_out, **options)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that training in these pieces depends on, besides the configuration."""
        loader = self._training
        sha = hashlib.sha256(
            f"plap.Pieces/1 {loader.parts_per_batch} {self.pieces_per_step} {loader.seed} "
            f"{self.task.num_outputs} {self.graph.digest} {features_digest(self.x)}".encode()
        )
        if self.task.metric.name != self.task.headline or self.task.weights(self.y[:0]) is not None:
            sha.update(json.dumps(self.task.settings(), sort_keys=True).encode())
        known = self.split.train | self.split.val
        for values in (self._part, self.split.train, self.split.val, self.y[known]):
            sha.update(values.cpu().numpy().tobytes())
        return sha.hexdigest()

    def steps(self, epoch: int) -> Iterator[list[Share]]:
        """The pieces of each step of an epoch, not yet cut out; without those that have no training node."""
        train = self.split.train
        every = [
            Share(number, nodes, int(train[nodes].sum()))
            for number, nodes in enumerate(self._training.groups(epoch))
        ]
        for start in range(0, len(every), self.pieces_per_step):
            step = [share for share in every[start : start + self.pieces_per_step] if share.labelled]
            if step:
                yield step

    def groups(self) -> Iterator[Tensor]:
        """All nodes, those of ``parts_per_batch`` parts at a time."""
        return self._all.groups()

    def training_piece(self, share: Share) -> Piece:
        """The graph on the nodes of ``share`` alone, and its training nodes."""
        piece = induced(self.graph, share.nodes)
        return self._made(piece, self.split.train[piece.nodes])

    def exact_piece(self, nodes: Tensor, halo: Halo) -> Piece:
        """These nodes and their halo."""
        piece = with_halo(self.graph, nodes, halo.hops, rim_loops=halo.rim_loops)
        return self._made(piece, piece.core)

    def whole(self, nodes: Tensor) -> Piece:
        """The whole graph as one piece, in which these nodes are wanted."""
        return Piece(self.graph, self.x, nodes, nodes, self.y[nodes], self.weighted)

    def _made(self, piece: Subgraph, wanted: Tensor) -> Piece:
        rows = wanted.nonzero().squeeze(1)
        nodes = piece.nodes[rows]
        return Piece(piece.graph, piece.rows(self.x), rows, nodes, self.y[nodes], self.weighted)
