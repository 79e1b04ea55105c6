"""Training in pieces: parts of a graph, or graphs of a collection, on one process or on many."""

from plap.training.devices import (
    Ranks,
    choose_device,
    join_ranks,
    restart_count,
    run_id,
    world_size,
)
from plap.training.pieces.checkpoints import Checkpoint
from plap.training.pieces.cutting import Piece, Pieces
from plap.training.pieces.model_on_pieces import EvaluateOn
from plap.training.pieces.trainer import train_in_pieces

__all__ = [
    "Checkpoint",
    "EvaluateOn",
    "Piece",
    "Pieces",
    "Ranks",
    "choose_device",
    "join_ranks",
    "restart_count",
    "run_id",
    "train_in_pieces",
    "world_size",
]
