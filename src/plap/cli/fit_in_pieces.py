"""``plap fit --parts``: a graph too large to train on whole, on one process or on those of torchrun."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from plap.errors import InputError

if TYPE_CHECKING:
    from plap.data.dataset import GraphData
    from plap.data.splits import Split
    from plap.fitting.settings import FitSettings, PieceSettings


def piece_settings(
    parts: int | None,
    parts_per_batch: int | None,
    graphs_per_batch: int | None,
    pieces_per_step: int | None,
    evaluation: str,
    device: str,
    checkpoint_every: int | None,
    resume: bool,
    others: Mapping[str, object],
) -> PieceSettings | None:
    """What the flags say of training in pieces, None if nothing; ``others`` are flags that go without it."""
    from plap.fitting.settings import PieceSettings  # noqa: PLC0415
    from plap.training.pieces.distributed import world_size  # noqa: PLC0415
    from plap.training.pieces.evaluation import check_place_of_evaluation  # noqa: PLC0415

    processes = world_size()
    if parts is None and graphs_per_batch is None:
        needing = {
            "--parts-per-batch": parts_per_batch,
            "--pieces-per-step": pieces_per_step,
            "--checkpoint-every": checkpoint_every,
            "--resume": resume or None,
            "--device": None if device in ("auto", "cpu") else device,
            "--evaluation": None if evaluation == "auto" else evaluation,
        }
        for flag, value in needing.items():
            if value is not None:
                raise InputError(f"{flag} goes with training in pieces: add --parts or --graphs-per-batch")
        if processes > 1:
            raise InputError("several processes can only train in pieces: add --parts or --graphs-per-batch")
        return None
    if parts is not None and graphs_per_batch is not None:
        raise InputError("--parts cuts one graph and --graphs-per-batch takes graphs whole: give one of them")
    if graphs_per_batch is not None and parts_per_batch is not None:
        raise InputError("--parts-per-batch goes with --parts")
    for flag, other in others.items():
        if other is not None:
            raise InputError(f"{flag} does not go with training in pieces")
    for flag, count in (
        ("--parts", parts),
        ("--parts-per-batch", parts_per_batch),
        ("--graphs-per-batch", graphs_per_batch),
        ("--pieces-per-step", pieces_per_step),
        ("--checkpoint-every", checkpoint_every),
    ):
        if count is not None and count < 1:
            raise InputError(f"{flag} must be 1 or more, not {count}")
    check_place_of_evaluation(evaluation)
    return PieceSettings(
        parts=parts,
        parts_per_batch=graphs_per_batch or parts_per_batch or 1,
        pieces_per_step=pieces_per_step or processes,
        device=device,
        evaluation=evaluation,  # type: ignore[arg-type]
        checkpoint_every=checkpoint_every or 10,
        resume=resume,
    )


def run_in_pieces(
    load: Callable[[], tuple[GraphData, Split]],
    settings: FitSettings,
    how: PieceSettings,
    out: Path,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train with all processes; the first one shows progress, writes, and says what was found."""
    from plap.cli.fit import check_place, conclude, progress_bars  # noqa: PLC0415
    from plap.fitting.in_pieces import compare_in_pieces, first_checkpoint, remove_checkpoints  # noqa: PLC0415
    from plap.training.pieces import join_ranks  # noqa: PLC0415

    place = Path(os.path.realpath(out))
    checkpoints = place.parent / f"{place.name}.checkpoints"
    with join_ranks(how.device) as ranks:
        if ranks.first:
            check_place(out)
        data, split = load()
        if ranks.first:
            check_place(out, data, settings)
            if how.resume and not os.path.exists(first_checkpoint(checkpoints, settings)):
                print(f"plap: no checkpoint in {checkpoints}, so training begins anew", file=sys.stderr)
        with progress_bars(quiet=quiet or as_json or not ranks.first) as announce:
            comparison = compare_in_pieces(data, split, settings, ranks, checkpoints, announce)
        if ranks.first:
            conclude(comparison, out, as_json=as_json)
            if not comparison.interrupted:
                remove_checkpoints(checkpoints)
