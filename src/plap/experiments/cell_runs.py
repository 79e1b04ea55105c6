"""The runs of one cell, whether a store holds them or a file of published evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plap.experiments.plan import CellPlan, Effort
from plap.experiments.runs import Record
from plap.experiments.store import Store
from plap.training import RunConfig


@dataclass(frozen=True)
class CellRuns:
    """One model on one dataset: what was searched, and the runs of what was chosen."""

    plan: CellPlan
    search: tuple[Record, ...] = ()
    finalists: tuple[Record, ...] = ()
    """Runs of the best configurations of the search with three seeds, if one was chosen by them."""
    final: tuple[Record, ...] = ()

    @property
    def effort(self) -> Effort:
        """What was computed for the cell."""
        return self.plan.effort

    @property
    def chosen(self) -> RunConfig | None:
        """The configuration of the final runs; None before the first of them."""
        return self.final[0].run.config if self.final else None

    @property
    def settings(self) -> dict[str, object] | None:
        """The fields that were searched, with the values that were chosen."""
        config = self.chosen
        return None if config is None else {name: config.value(name) for name in self.plan.candidates.grid}

    @property
    def every(self) -> Sequence[Record]:
        """All runs, each once: a run of the search or a finalist may be a final one too."""
        return list(
            {record.run.key: record for record in (*self.search, *self.finalists, *self.final)}.values()
        )


def stored_runs(plans: Sequence[CellPlan], store: Store) -> list[CellRuns]:
    """What a store holds of cells; there are no final runs of a cell before its search is complete."""
    found = []
    for plan in plans:
        stages = plan.stages(store.records)
        search, finalists, final = (
            tuple(store.records(stages.get(stage, []))) for stage in ("search", "finalist", "final")
        )
        found.append(CellRuns(plan, search, finalists, final))
    return found
