"""What a fit found, as Python users have it: numbers, predictions, files and a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.atomic_file import write_atomic
from plap.data.dataset import features_digest
from plap.errors import InputError
from plap.fitting.adversary import attack_fit
from plap.fitting.artifacts import Predictions, ResultFiles, SavedModel, write_result
from plap.fitting.artifacts.saved_model import current_versions
from plap.fitting.comparison import Comparison
from plap.fitting.export import Export, export_model
from plap.fitting.node_stories import node_sections, storyteller
from plap.fitting.page_content import judged_trust, main_finding, page_content
from plap.fitting.prediction import nodes_of_fit, predict_nodes, read_like, with_roles
from plap.fitting.search import searched_values
from plap.fitting.task_content import task_sections
from plap.insight.attack import AttackCurve
from plap.reporting.fit_content import FitReport
from plap.reporting.html_page import fit_page
from plap.reporting.node_sections import NodeStory


@dataclass(frozen=True, eq=False)
class FitResult(Comparison):
    """The model first, then its rivals; what :func:`plap.fit` returns."""

    def __repr__(self) -> str:
        """What was fitted, and how good it is: the first sentences of the page."""
        return f"FitResult({self.data!r})\n{main_finding(self)}"

    @cached_property
    def predictions(self) -> Predictions:
        """Probabilities of every node, its role in the split and its known label; ``.frame()`` is a table."""
        data = self.data
        roles = np.full(data.graph.num_nodes, "unlabelled", dtype=object)
        for name in ("train", "val", "test"):
            roles[getattr(self.split, name).numpy()] = name
        return Predictions(
            data.node_ids, self.task, self.model.probabilities.numpy(), roles.tolist(), data.y.numpy()
        )

    @cached_property
    def saved_model(self) -> SavedModel:
        """The ensemble, and what it was made for."""
        data, fitted = self.data, self.fitted
        return SavedModel(
            config=fitted.config.to_dict(),
            configs=[run.config.to_dict() for run in fitted.members],
            states=[run.state for run in fitted.members],
            task=self.task,
            num_features=data.x.shape[1],
            feature_names=data.feature_names,
            graph_digest=data.graph.digest,
            features_digest=features_digest(data.x),
            columns=None if data.columns is None else data.columns.transform,
            relations={} if data.relations is None else dict(data.relations.factors or {}),
            weighted=data.graph.is_weighted,
            named=data.named,
            mean_neighbours=2 * data.graph.num_edges / max(data.graph.num_nodes, 1),
            table=data.provenance.table if data.columns is None else data.columns.remembered(),
        )

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Numbers for a program to read; what ``metrics.json`` holds."""
        data, split, fitted = self.data, self.split, self.fitted
        dictionary = None if data.columns is None else data.columns.dictionary
        return {
            "graph": data.name,
            "task": data.task.name,
            "metric": self.task.metric.name,
            "decision": self.task.settings(),
            "nodes": data.graph.num_nodes,
            "edges": data.graph.num_edges,
            "files": data.provenance.files,
            "notes": self.notes,
            "relations": None if data.relations is None else data.relations.factors,
            "columns": None if dictionary is None else dictionary.to_json(),
            "split": {
                "kind": split.kind,
                "seed": split.seed,
                "index": split.index,
                "rates": split.rates,
                "sizes": split.sizes,
                "digest": split.digest,
                "bagged": self.bags is not None,
            },
            "settings": asdict(self.settings),
            "threads": torch.get_num_threads(),
            "methods": [
                {
                    "name": method.name,
                    "uses": method.uses,
                    "scores": method.scores,
                    "interval": method.interval,
                    "seconds": method.seconds,
                }
                for method in self.methods
            ],
            "config": fitted.config.to_dict(),
            "runners_up": [config.to_dict() for config in fitted.runners_up],
            "members": [
                {
                    "runner_up": not fitted.is_of_winner(run),
                    "seed": run.config.seed,
                    "epochs": run.epochs,
                    "best_epoch": run.best_epoch,
                    "val_score": run.val_score,
                }
                for run in fitted.ensemble.runs
            ],
            "trials": [
                {
                    **searched_values(trial.config),
                    "seed": trial.config.seed,
                    "rung": trial.rung,
                    "epochs": trial.epochs,
                    "val_score": trial.val_score,
                }
                for trial in fitted.trials
            ],
            "interrupted": self.interrupted,
            "versions": current_versions(),
        }

    def predict(self, data: Any, *, device: str = "cpu") -> Predictions:
        """Predictions for another graph with the same columns, in any order; the model need not have seen it.

        ``data`` may be all that :func:`plap.fit` takes. What was odd about it is in ``notes`` of the result:
        cells that cannot be read, and columns and edges that drifted. Which nodes were in the fit, ``role``
        and ``new`` of its table say: nodes with the names of the fit's nodes. Without names (``ids`` of an
        NPZ file, ``node_ids`` of a GraphData) it is the first rows, if they have the features of all nodes of
        the fit, or else its edges and labels; nodes in further rows are new.
        """
        table = predict_nodes(self.saved_model, read_like(self.saved_model, data), device=device)
        return with_roles(table, nodes_of_fit(self.predictions.frame()))

    def save(self, folder: Path | str) -> Path:
        """Write what ``plap fit`` writes, whole or not at all; an earlier result in ``folder`` is replaced.

        Returns
        -------
        Path
            The folder's real path.
        """
        files = ResultFiles(self.predictions, self.saved_model, self.metrics, self.page)
        return write_result(folder, files, flag="folder")

    def export(self, path: Path | str) -> Export:
        """Write a program that runs without plap; see :func:`plap.fitting.export.export_model`."""
        return export_model(self.saved_model, path)

    def report(self, path: Path | str) -> None:
        """Write the page alone: one HTML file with everything in it."""
        page = self.page.encode()
        try:
            write_atomic(Path(path), page)
        except OSError as error:
            raise InputError(f"path: {path} cannot be written ({error.strerror})") from None

    @cached_property
    def page(self) -> str:
        """The page, HTML."""
        return fit_page(self.content, task_sections(self), node_sections(self, self.edge_trust))

    @cached_property
    def content(self) -> FitReport:
        """What the page and the terminal show."""
        return page_content(self, self.edge_trust)

    @cached_property
    def edge_trust(self) -> Tensor | None:
        """Trust of every edge, in the order of ``data.graph.edge_index``; NaN for edges that were not drawn.

        Beyond 100,000 edges as many are drawn at random and judged. None where the model has no edge trust.
        """
        return judged_trust(self)

    def attack(
        self,
        budget: float | None = None,
        *,
        local: int = 0,
        poison: bool = False,
        members: int = 4,
        steps: int = 60,
        seed: int = 0,
    ) -> AttackCurve:
        """How the accuracy on the test nodes falls when an adversary who knows the model changes edges.

        Parameters
        ----------
        budget : float, optional
            Largest share of the edges that the adversary may change, 0.1 by default; if ``local``, of the
            edges of a node, all of them by default.
        local : int
            Attack this many test nodes one by one, the first ones; 0: all at once.
        poison : bool
            Retrain the model on each attacked graph: the attack comes before training.
        members : int
            How many ensemble members are attacked together, the first ones.
        steps, seed :
            As for :func:`plap.insight.attack_curve`.
        """
        return attack_fit(
            self.saved_model, self.data, self.split, self.split.test, budget, local=local, poison=poison,
            first=None if self.bags is None else self.bags.first, members=members, steps=steps, seed=seed,
        )  # fmt: skip

    def explain(self, node: Any) -> NodeStory:
        """How the prediction of a node came about: what its own columns and its neighbours add.

        Parameters
        ----------
        node : an id, as in ``data.node_ids``
        """
        return storyteller(self, self.edge_trust).story_of(node)
