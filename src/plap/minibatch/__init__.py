"""Training in pieces: parts of a graph, or graphs of a collection, on one process or on many."""

from plap.minibatch.activations import activation_bytes
from plap.minibatch.checkpoints import Checkpoint
from plap.minibatch.devices import choose_device
from plap.minibatch.distributed import Ranks, join_ranks
from plap.minibatch.evaluation import EvaluateOn
from plap.minibatch.pieces import Piece, Pieces
from plap.minibatch.pyg import pyg_graphs
from plap.minibatch.trainer import train_in_pieces

__all__ = [
    "Checkpoint",
    "EvaluateOn",
    "Piece",
    "Pieces",
    "Ranks",
    "activation_bytes",
    "choose_device",
    "join_ranks",
    "pyg_graphs",
    "train_in_pieces",
]
