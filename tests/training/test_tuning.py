from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import plap
import tiny_training as tiny
from plap import InputError
from plap.data.tasks import Regression
from plap.models import find_model
from plap.split_masks import BaggedSplit, SplitLike
from plap.training import (
    History,
    Progress,
    RunConfig,
    RunResult,
    SearchSpace,
    TuneResult,
    architectures,
    train_ensemble,
    train_runs,
    tune,
)
from plap.training.halving import as_good, behind, ranked, seeds_per_finalist, survivors, usual_budget
from plap.training.loop import epoch_cost
from plap.training.space import count_models, draw_from, near_to
from plap.training.workers import train_side_by_side

DATA = tiny.data(nodes=80, phi=-0.6)
SPLIT = tiny.masks(DATA.y)
SPACE = SearchSpace(RunConfig(hidden=8, max_epochs=150, patience=120), K=(3, 4), lr=(0.01, 0.05))
BUDGET = 4000


def search(y: torch.Tensor = DATA.y, **options: object) -> TuneResult:
    return tune(DATA.graph, DATA.x, y, SPLIT, **{"space": SPACE, "budget": BUDGET} | options)  # type: ignore[arg-type]


RESULT = search()


def outcome(result: TuneResult) -> list[tuple[RunConfig, int, float, float]]:
    return [(trial.config, trial.rung, trial.val_score, trial.val_loss) for trial in result.trials]


def test_test_labels_are_never_touched() -> None:
    poisoned = torch.where(SPLIT.train | SPLIT.val, DATA.y, -1)
    other = search(poisoned)
    assert other.best == RESULT.best
    assert outcome(other) == outcome(RESULT)


def test_rungs_get_shorter_lists_of_longer_runs() -> None:
    rungs = [[trial for trial in RESULT.trials if trial.rung == k] for k in range(3)]
    sizes = [len({replace(trial.config, seed=0, max_epochs=1) for trial in rung}) for rung in rungs]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 13 + 4  # powers, and penalties in addition
    assert sizes[-1] == 2
    longest = [max(trial.epochs for trial in rung) for rung in rungs]
    assert longest[0] == 100
    assert longest[-1] > 100


def test_the_winner_is_the_best_of_the_last_rung() -> None:
    last = [trial for trial in RESULT.trials if trial.rung == 2]
    assert RESULT.best in {replace(trial.config, seed=0) for trial in last}
    assert (RESULT.best.max_epochs, RESULT.best.patience, RESULT.best.value("hidden")) == (150, 120, 8)
    first = [trial for trial in RESULT.trials if trial.rung == 0]
    best = max(first, key=lambda trial: (trial.val_score, -trial.val_loss))
    survivors = {replace(trial.config, max_epochs=100) for trial in RESULT.trials if trial.rung == 1}
    assert best.config in survivors


def test_another_seed_tries_something_else() -> None:
    assert {t.config for t in search(seed=1).trials if t.rung == 0} != {
        t.config for t in RESULT.trials if t.rung == 0
    }


def test_a_wider_space_tries_all_that_a_narrower_one_would() -> None:
    narrow, wide = SearchSpace(penalty=("power",)).draw(40, seed=3), SearchSpace().draw(40, seed=3)
    assert [config for config in wide if config.parameters.penalty == "power"] == narrow
    assert len(narrow) == 40
    found = tune(DATA.graph, DATA.x, DATA.y, SPLIT, space=SearchSpace(RunConfig(max_epochs=2)), budget=900)
    penalties = Counter(trial.config.value("penalty") for trial in found.trials if trial.rung == 0)
    assert penalties == {"power": 3, "mcp": 1}


def test_a_third_as_many_penalties_as_powers_are_drawn() -> None:
    drawn = SearchSpace().draw(37, seed=0)
    counts = Counter((c.parameters.penalty, c.parameters.p) for c in drawn)
    assert sorted(counts[("power", p)] for p in (1.0, 1.5, 2.0, 2.5)) == [9, 9, 9, 10]
    assert (counts[("mcp", 2.0)], counts[("huber", 2.0)]) == (8, 4)  # there are four of Huber
    assert len(set(drawn)) == len(drawn) == 49
    every = SearchSpace().draw(10_000, seed=0)
    assert set(every) == set(SearchSpace().configs())


def test_penalties_take_no_places_away() -> None:
    """The best powers of every rung go on, however many penalties are better."""
    space = SearchSpace()
    drawn = space.draw(12, seed=0)
    powers = [config for config in drawn if not space.in_addition(config)]
    penalties = [config for config in drawn if space.in_addition(config)]
    assert (len(powers), len(penalties)) == (12, 4)
    numbers, added = dict.fromkeys(drawn, 0), set(penalties)
    assert survivors([*powers, *penalties], added, numbers, 3, [space], 80) == powers[:3]
    assert survivors([*penalties, *powers], added, numbers, 3, [space], 80) == [*penalties[:3], *powers[:3]]
    mixed = [powers[5], penalties[1], powers[2], powers[0], penalties[0]]
    assert survivors(mixed, added, numbers, 3, [space], 80) == mixed[:4]
    both = [SearchSpace(), SearchSpace(RunConfig("mlp"))]
    (mlp, *_) = both[1].configs()
    numbers[mlp] = 1
    kept = survivors([*penalties, *powers, mlp], added, numbers, 3, both, 80)
    assert kept == [*penalties[:2], *powers[:2], mlp]


@pytest.mark.parametrize("widen", [False, True])
def test_a_search_with_penalties_trains_all_that_one_without_them_does(widen: bool) -> None:
    data = tiny.data(nodes=80, phi=0.5)
    parts = tiny.masks(data.y)
    won = []
    for seed in (2, 3, 4, 5):
        base = RunConfig(hidden=8, max_epochs=40, seed=seed)
        wide, narrow = (
            tune(data.graph, data.x, data.y, parts, space=space, budget=1500, seed=seed)
            for space in (SearchSpace(base, widen=widen), SearchSpace(base, widen=widen, penalty=("power",)))
        )
        powers = [trial for trial in wide.trials if trial.config.value("penalty") == "power"]
        assert [(t.config, t.val_score) for t in powers] == [(t.config, t.val_score) for t in narrow.trials]
        won.append(wide.best.value("penalty") == "power")
        if won[-1]:
            assert wide.best == narrow.best
            joined = [other for other in wide.runners_up if other.value("penalty") == "power"]
            assert joined == [*narrow.runners_up]
    assert set(won) == {True, False}


SPREAD = [SearchSpace(), SearchSpace(RunConfig("mlp")), SearchSpace(RunConfig("gprgnn"), hidden=(16, 64))]


@settings(deadline=None, max_examples=10, phases=[Phase.generate])
@given(st.integers(0, 2**31), st.integers(1, 90))
def test_every_value_of_every_field_is_drawn_equally_often(seed: int, count: int) -> None:
    """Up to one, within each p and penalty."""
    for space in SPREAD:
        drawn = space.draw(count, seed)
        for grid in space.grids:
            for p in grid.get("p", (None,)):
                group = [c for c in drawn if _grid_has(grid, c) and (p is None or c.value("p") == p)]
                for name in grid.keys() - {"p"}:
                    counts = Counter(config.value(name) for config in group[:16])
                    each = [counts[value] for value in grid[name]]
                    assert max(each) - min(each) <= 1, (name, each)


def _grid_has(grid: Any, config: RunConfig) -> bool:
    return all(config.value(name) in values for name, values in grid.items())


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_values_are_spread(seed: int) -> None:
    """15 configurations have most of the 15 pairs of mu and K and all 10 of mu and lr; by chance 10 and 8."""
    drawn = SearchSpace(penalty=("power",), p=(1.5,)).draw(15, seed)
    assert len({(config.value("mu"), config.value("K")) for config in drawn}) >= 12
    assert len({(config.value("mu"), config.value("lr")) for config in drawn}) == 10


def test_a_chosen_value_leaves_the_grids_that_search_its_field() -> None:
    def penalties(**values: Any) -> set[str]:
        return {config.parameters.penalty for config in SearchSpace(**values).configs()}

    assert penalties(mu=(0.5,)) == {"power", "mcp", "huber"}
    assert penalties(p=(1.5,)) == {"power"}
    assert penalties(gamma=(1.5,)) == {"mcp", "huber"}
    assert penalties(penalty=("huber",)) == {"huber"}
    assert penalties(penalty=("huber",), hidden=(8, 16)) == {"huber"}
    assert penalties(penalty=("welsch",), gamma=(1.0,)) == {"welsch"}


def test_a_small_space_goes_to_the_last_rung_at_once() -> None:
    space = SearchSpace(RunConfig(model="mlp", max_epochs=5), lr=(0.01,), dropout=(0.5,), weight_decay=(0.0,))
    result = tune(DATA.graph, DATA.x, DATA.y, SPLIT, space=space)
    assert [trial.rung for trial in result.trials] == [0, 0]
    assert [trial.config.seed for trial in result.trials] == [0, 1]


def test_control_c_gives_the_best_so_far() -> None:
    def progress(state: Progress) -> None:
        if state.done > 0.5:
            raise KeyboardInterrupt

    result = search(progress=progress)
    assert result.interrupted
    assert result.best.max_epochs == 150
    assert 13 <= len(result.trials) < len(RESULT.trials)


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="budget must be"):
        tune(DATA.graph, DATA.x, DATA.y, SPLIT, budget=0)
    with pytest.raises(InputError, match="no value for mu"):
        SearchSpace(mu=())
    with pytest.raises(InputError, match="at least one seed"):
        train_ensemble(DATA.graph, DATA.x, DATA.y, SPLIT, RunConfig(), seeds=[])


def test_an_ensemble_is_the_mean_of_its_runs() -> None:
    config = RunConfig(max_epochs=5)
    ensemble = train_ensemble(DATA.graph, DATA.x, DATA.y, SPLIT, config, seeds=[4, 9])
    runs = train_runs(DATA.graph, DATA.x, DATA.y, [replace(config, seed=s) for s in (4, 9)], SPLIT)
    expected = (runs[0].logits.softmax(1) + runs[1].logits.softmax(1)) / 2
    torch.testing.assert_close(ensemble.probabilities, expected)
    assert torch.equal(ensemble.predictions, expected.argmax(1))
    multilabel = train_ensemble(DATA.graph, DATA.x, tiny.multilabel(DATA), SPLIT, config, seeds=2)
    assert multilabel.predictions.shape == (80, 3)
    torch.testing.assert_close(
        multilabel.probabilities, sum(run.logits.sigmoid() for run in multilabel.runs) / 2
    )


MLP = SearchSpace(RunConfig("mlp", max_epochs=20), hidden=(8, 16))
GCN = SearchSpace(RunConfig("gcn", max_epochs=20))
SAGE = SearchSpace(RunConfig("sage", max_epochs=20))
DEEP = architectures(RunConfig("deep-pgnn", max_epochs=20), hidden=(8,), layers=(1, 2))


def test_several_spaces_share_the_budget_and_each_reaches_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless one is clearly worse, which is another test's."""
    monkeypatch.setattr("plap.training.halving.behind", lambda *_: set())
    spaces = [MLP, GCN, *DEEP]
    found = tune(DATA.graph, DATA.x, DATA.y, SPLIT, space=spaces, budget=3600)
    first = [trial.config for trial in found.trials if trial.rung == 0]
    counts = [sum(config.model == model for config in first) for model in ("mlp", "gcn", "deep-pgnn")]
    assert counts == [7, 6, 9]  # an MLP costs less than a GCN; each form of a deep network has a few at least
    last = max(trial.rung for trial in found.trials)
    finalists = [trial.config for trial in found.trials if trial.rung == last]
    assert {config.model for config in finalists} == {"mlp", "gcn", "deep-pgnn"}
    assert {config.value("norm") == "none" for config in finalists if config.model == "deep-pgnn"} == {
        True,
        False,
    }
    assert all(sum(replace(c, seed=0) == replace(d, seed=0) for d in finalists) == 2 for c in finalists)


@pytest.mark.parametrize("seed", range(4))
def test_the_search_of_an_architecture_begins_where_it_says(seed: int) -> None:
    """However few are drawn, because one or two of hundreds say little; all others are drawn as without."""
    spaces = architectures(RunConfig("deep-pgnn"))
    for form, space in zip(find_model("deep-pgnn").architectures, spaces, strict=True):
        start, *others = space.draw(20, seed)
        assert form.start
        for name, values in space.grids[0].items():
            assert start.value(name) == form.start.get(name, values[0])
        assert space.draw(1, seed) == [start]
        anywhere = copy(space)
        anywhere._start = None
        assert others == [config for config in anywhere.draw(20, seed) if config != start][:19]
        assert others != space.draw(20, seed + 4)[1:]
    for mixed in (spaces, [SearchSpace(), *spaces]):
        drawn = draw_from(mixed, 2 * len(mixed), seed, DATA.graph, DATA.x)
        assert all(space.draw(1, seed)[0].with_values(seed=seed) in drawn for space in spaces)


def test_a_search_begins_within_the_values_that_were_asked_for() -> None:
    *_, blocks = architectures(RunConfig("deep-pgnn"), p=(1.5,), layers=(6, 9))
    (first,) = blocks.draw(1, 0)
    assert (first.value("p"), first.value("layers"), first.lr) == (1.5, 6, 0.01)


def test_a_model_without_edges_comes_in_addition() -> None:
    """The others are drawn as if it were not there, and the usual budget is theirs."""
    with_mlp, without = (
        draw_from(spaces, 12, 0, DATA.graph, DATA.x) for spaces in ([GCN, MLP, *DEEP], [GCN, *DEEP])
    )
    assert [config for config in with_mlp if config.uses_edges] == list(without)
    assert count_models([GCN, MLP, *DEEP]) == count_models([GCN, *DEEP]) == 2
    assert count_models([MLP]) == 1


def test_who_may_stand_in_for_the_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    """With edges or without them, as the winner."""
    monkeypatch.setattr("plap.training.halving.as_good", lambda *_: True)
    monkeypatch.setattr("plap.training.halving.behind", lambda *_: set())
    for first in ("mlp", "gcn"):
        monkeypatch.setattr(
            "plap.training.halving.ranked",
            lambda configs, *_, first=first: sorted(configs, key=lambda config: config.model != first),
        )
        found = tune(DATA.graph, DATA.x, DATA.y, SPLIT, space=[MLP, GCN], budget=3600)
        assert found.best.model == first
        assert {other.model for other in found.runners_up} <= {first}


def test_the_best_of_all_spaces_wins() -> None:
    found = tune(DATA.graph, DATA.x, DATA.y, SPLIT, space=[MLP, GCN], budget=3600)
    last = [trial for trial in found.trials if trial.rung == max(t.rung for t in found.trials)]
    means: dict[RunConfig, float] = {}
    for trial in last:
        config = replace(trial.config, seed=0)
        means[config] = means.get(config, 0.0) + trial.val_score / 3
    assert means[found.best] == pytest.approx(max(means.values()))
    assert found.best.uses_edges == (found.best.model == "gcn")


def test_where_edges_bring_nothing_the_model_without_them_is_preferred() -> None:
    """All features tell the class: both models are right everywhere, and the MLP's loss is higher."""
    x = torch.nn.functional.one_hot(DATA.y, 2).float() * 5
    spaces = [
        SearchSpace(RunConfig("gcn", max_epochs=60), lr=(0.05,), dropout=(0.0,), weight_decay=(0.0,)),
        SearchSpace(RunConfig("mlp", max_epochs=60), lr=(0.01,), dropout=(0.0,), weight_decay=(0.0,)),
    ]
    graph = plap.Graph.from_edges([], num_nodes=DATA.graph.num_nodes)
    found = tune(graph, x, DATA.y, SPLIT, space=spaces, budget=1000)
    assert {trial.val_score for trial in found.trials} == {1.0}
    losses = {trial.config.model: trial.val_loss for trial in found.trials}
    assert losses["gcn"] < losses["mlp"]
    assert found.best.model == "mlp"
    assert not found.best.uses_edges


def run(config: RunConfig, score: float, losses: list[float]) -> RunResult:
    curve = torch.tensor(losses, dtype=torch.float64)
    history = History(curve, curve, torch.full_like(curve, score))
    return RunResult(config, 1, len(losses), 0.0, history, score, losses[0], {}, torch.zeros(1, 1))


def test_among_equal_scores_the_lowest_loss_of_a_run_decides() -> None:
    """With 40 validation nodes a point less is made up for by a much lower loss, with 40,000 it is not."""
    configs = [RunConfig(p=p) for p in (1.0, 1.5, 2.0)]

    even = [run(c, 0.8, [1.0, low]) for c, low in zip(configs, (0.9, 0.4, 0.8), strict=True)]
    assert ranked(configs, even, 1, 40) == [configs[1], configs[2], configs[0]]
    ahead = [run(configs[0], 0.81, [1.0, 0.9]), *even[1:]]
    assert ranked(configs, ahead, 1, 40)[0] == configs[1]
    assert ranked(configs, ahead, 1, 40_000)[0] == configs[0]
    broken = [run(configs[0], 0.9, [float("inf")]), *even[1:]]
    assert ranked(configs, broken, 1, 40_000)[0] == configs[0]
    assert ranked(configs, [run(c, 0.5, [float("inf")]) for c in configs], 1, 40) == configs


@pytest.mark.parametrize(
    ("scores", "nodes", "expected"),
    [
        ((0.9, 0.8), 2500, {1}),  # three standard errors are 0.018, a quarter more errors 0.025
        ((0.9, 0.88), 2500, set()),  # significant, but it may catch up
        ((0.9, 0.8), 50, set()),  # with fifty nodes it may be chance
        ((0.7, 0.9), 2500, {0}),
        ((float("-inf"), 0.9), 2500, {0}),
        ((1.0, 0.92), 40, set()),  # all of forty right: two wrong would be no surprise
        ((1.0, 0.9), 400, {1}),
    ],
)
def test_a_space_that_is_clearly_worse_is_out_of_the_running(
    scores: tuple[float, float], nodes: int, expected: set[int]
) -> None:
    """By the best of its candidates, whatever the others come to."""
    configs = [RunConfig("gcn"), RunConfig("mlp"), RunConfig("mlp", lr=0.3)]
    runs = [run(config, score, [1.0]) for config, score in zip(configs, (*scores, 0.1), strict=True)]
    space_of = dict(zip(configs, (0, 1, 1), strict=True))
    assert behind(configs, runs, 1, space_of, nodes, DATA.task) == expected
    none = [run(config, float("-inf"), [1.0]) for config in configs]
    assert behind(configs, none, 1, space_of, nodes, DATA.task) == set()
    cut_off = [replace(result, out_of_time=True) for result in runs]
    assert behind(configs, cut_off, 1, space_of, nodes, DATA.task) == set()


def test_errors_of_numbers_are_compared_as_such() -> None:
    task = Regression().with_metric("mae")
    configs = [RunConfig("gcn"), RunConfig("mlp")]
    for error, expected in ((60.0, set()), (66.0, {1})):
        runs = [run(configs[0], -50.0, [1.0]), run(configs[1], -error, [1.0])]
        assert behind(configs, runs, 1, dict(zip(configs, (0, 1), strict=True)), 100, task) == expected


def test_of_a_model_without_edges_the_best_goes_on_beside_the_others() -> None:
    powers = [RunConfig(p=p) for p in (1.0, 1.5, 2.0)]
    mlps = [RunConfig("mlp", lr=lr) for lr in (0.1, 0.2)]
    numbers = {**dict.fromkeys(powers, 0), **dict.fromkeys(mlps, 1)}
    for nodes in (100, 100_000):
        kept = survivors([*mlps, *powers], set(), numbers, 2, [SearchSpace(), MLP], nodes, least=2)
        assert kept == [mlps[0], *powers[:2]]


def test_what_is_near_to_a_penalty_has_its_unit() -> None:
    """A candidate's unit is measured, so it is not by its unit that a neighbour differs."""
    space = SearchSpace()
    drawn = draw_from([space], 24, 0, DATA.graph, DATA.x)
    leader = next(config for config in drawn if config.value("penalty") == "mcp")
    near = near_to(leader, [space], {leader: 0}, DATA.graph, DATA.x, allowance=0)
    assert near  # a few whatever they cost
    assert {config.value("unit") for config in near} == {leader.value("unit")} != {1.0}


def test_places_of_a_space_that_is_out_go_to_the_next_best() -> None:
    configs = [RunConfig("deep-pgnn", hidden=64, lr=lr) for lr in (0.1, 0.2, 0.3)]
    numbers = dict.fromkeys(configs, 1)
    spaces = [SearchSpace(), SearchSpace(configs[0])]
    for least, count in ((1, 1), (2, 2), (3, 3)):
        assert survivors(configs, set(), numbers, 1, spaces, 10_000, least) == configs[:count]


@pytest.mark.parametrize("other", [SAGE, MLP], ids=["with edges", "without"])
def test_what_is_nearest_to_the_best_is_tried_where_a_space_is_out(
    other: SearchSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the place of a space with edges; one without them leaves no place."""
    spaces = [GCN, other]
    monkeypatch.setattr("plap.training.halving.behind", lambda *_: set())
    usual = tune(DATA.graph, DATA.x, DATA.y, SPLIT, space=spaces, budget=2400)
    monkeypatch.setattr("plap.training.halving.behind", lambda *_: {1})
    monkeypatch.setattr(
        "plap.training.halving.ranked",
        lambda *given: sorted(ranked(*given), key=lambda config: config.model != "gcn"),
    )
    refined = tune(DATA.graph, DATA.x, DATA.y, SPLIT, space=spaces, budget=2400)
    before, after = ([trial for trial in found.trials if trial.rung == 0] for found in (usual, refined))
    assert outcome(usual)[: len(before)] == outcome(refined)[: len(before)]
    near = [trial.config for trial in after[len(before) :]]
    assert bool(near) is other.base.uses_edges
    tried = [trial.config for trial in before]
    for config in near:
        assert config.model == "gcn"
        assert config not in tried
        agreements = [sum(config.value(name) == c.value(name) for name in GCN.grids[0]) for c in tried]
        assert max(agreements) == len(GCN.grids[0]) - 1
        tried.append(config)
    later = {trial.config.model for trial in refined.trials if trial.rung > 0}
    assert later == {"gcn"}


def test_every_model_adds_to_the_usual_budget_of_a_small_graph() -> None:
    assert usual_budget(DATA.graph, DATA.x) == 11_000
    assert usual_budget(DATA.graph, DATA.x, models=2) == 22_000
    large = plap.Graph.from_edges([(k, k + 1) for k in range(49_999)], num_nodes=50_000)
    x = torch.zeros(50_000, 1)
    assert usual_budget(large, x) == usual_budget(large, x, models=2) < 11_000


@pytest.mark.parametrize("space", [[], {"p": [1, 2]}, RunConfig("mlp"), ["mlp"]])
def test_what_is_no_space_is_refused(space: Any) -> None:
    with pytest.raises(InputError, match="space must be a SearchSpace or a list of at least one, not"):
        tune(DATA.graph, DATA.x, DATA.y, SPLIT, space=space)


def scored(model: str, *scores: float) -> list[RunResult]:
    return [run(RunConfig(model, seed=k), score, [1.0]) for k, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("best", "other", "nodes", "expected"),
    [
        (scored("gcn", 0.8, 0.8), scored("pgnn", 0.75, 0.7), 100, True),  # two standard errors are 0.08
        (scored("gcn", 0.8, 0.8), scored("pgnn", 0.75, 0.67), 100, False),
        (scored("gcn", 0.8, 0.8), scored("pgnn", 0.75, 0.7), 10_000, False),
        (scored("mlp", 0.8, 0.8), scored("mlp", 0.8, 0.78), 100, True),
        (scored("gcn", 1.0, 1.0), scored("pgnn", 1.0, 1.0), 100, True),
        (scored("gcn", 1.0, 1.0), scored("pgnn", 1.0, 0.95), 100, True),  # a perfect score has an error too
        (scored("gcn", 1.0, 1.0), scored("pgnn", 1.0, 0.94), 100, False),
        (scored("gcn", 0.8, 0.8), [], 100, False),
    ],
)
def test_what_validation_cannot_tell_apart(
    best: list[RunResult], other: list[RunResult], nodes: int, expected: bool
) -> None:
    assert as_good(best, other, nodes, DATA.task) is expected


def test_the_scale_of_an_error_is_that_of_the_error() -> None:
    numbers = Regression().with_metric("mae")
    assert as_good(scored("gcn", -50.0), scored("pgnn", -59.0), 100, numbers)
    assert not as_good(scored("gcn", -50.0), scored("pgnn", -61.0), 100, numbers)
    explained = Regression().with_metric("r2")
    assert as_good(scored("gcn", 0.9), scored("pgnn", 0.881), 100, explained)
    assert not as_good(scored("gcn", 0.9), scored("pgnn", 0.87), 100, explained)


@pytest.mark.parametrize("equal", [True, False])
def test_a_finalist_is_handed_on_if_it_is_as_good(equal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plap.training.halving.as_good", lambda *_: equal)
    monkeypatch.setattr("plap.training.halving._FEW_NODES", 0)
    found = search(budget=400)
    seeds = [run.config.seed for run in found.finalists]
    assert seeds == ([0, 1, 2, 0, 1, 2] if equal else [0, 1, 2])
    assert len(found.runners_up) == equal
    chosen = [found.best, *found.runners_up]
    assert list(dict.fromkeys(run.config.with_values(seed=0) for run in found.finalists)) == chosen


def test_finalists_have_fewer_seeds_where_validation_tells_little() -> None:
    for bagged, val_nodes, seeds in ((False, 249, 2), (False, 250, 3), (True, 249, 2), (True, 250, 2)):
        assert seeds_per_finalist(val_nodes, bagged=bagged) == seeds


@pytest.mark.parametrize("bagged", [True, False])
@pytest.mark.parametrize("equal", [True, False])
def test_more_are_handed_on_where_validation_tells_little(
    equal: bool, bagged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many epochs, more of them have two seeds in the last rung than would have three."""

    def found_with(split: SplitLike) -> TuneResult:
        space = SearchSpace(RunConfig(max_epochs=5))
        return tune(DATA.graph, DATA.x, DATA.y, split, space=space, budget=12_000)

    monkeypatch.setattr("plap.training.halving.as_good", lambda *_: equal)
    found = found_with(BaggedSplit(SPLIT.train, SPLIT.val, DATA.y, 0) if bagged else SPLIT)
    monkeypatch.setattr("plap.training.halving._FEW_NODES", 0)
    usual = found_with(SPLIT)
    finals = [
        Counter(trial.config.with_values(seed=0) for trial in result.trials if trial.rung == 2)
        for result in (usual, found)
    ]
    assert {*finals[0].values()} == {3}
    assert {*finals[1].values()} == {2}
    assert len(finals[1]) > len(finals[0])
    expected = [len(final) - 1 if equal else 0 for final in finals]
    assert [len(result.runners_up) for result in (usual, found)] == expected
    together = [found.best, *found.runners_up]
    assert len({*together}) == len(together)
    assert [run.config for run in found.finalists] == [
        config.with_values(seed=seed) for config in together for seed in (0, 1)
    ]


def test_a_runner_up_that_was_cut_off_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plap.training.halving.as_good", lambda *_: True)
    monkeypatch.setattr("plap.training.halving._FEW_NODES", 0)
    (runner_up,) = search(budget=400).runners_up
    train = train_side_by_side

    def cut_off(*args: Any, **options: Any) -> list[RunResult]:
        runs = train(*args, **options)
        return [
            replace(run, out_of_time=run.config.with_values(seed=0) == runner_up and run.config.seed == 2)
            for run in runs
        ]

    monkeypatch.setattr("plap.training.tuning.train_side_by_side", cut_off)
    found = search(budget=400)
    assert not found.runners_up
    assert [run.config.with_values(seed=0) for run in found.finalists] == 3 * [found.best]


def test_a_wide_network_costs_more_the_larger_the_graph_is() -> None:
    """On the smallest graphs an epoch is overhead, whatever the model; on large ones it is the width."""
    narrow, wide = RunConfig(hidden=16), RunConfig(hidden=64)
    ratios = [epoch_cost(wide, nodes) / epoch_cost(narrow, nodes) for nodes in (10, 1000, 10**7)]
    assert ratios == sorted(ratios)
    assert ratios[0] < 1.1
    assert ratios[-1] == pytest.approx(4, rel=0.01)
