"""The configurations that a search may draw from, and which of several spaces it draws."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from plap.errors import InputError
from plap.graph import Graph
from plap.models import Grid, ModelKind, find_model
from plap.nn.linear import Features
from plap.training.config import OF_TRAINING, RunConfig, unknown_field
from plap.training.loop import epoch_cost

_FEWEST = 6
"""Configurations that are drawn from each of several spaces whatever they cost, as far as the first rung has
places."""
_HURRIED_LR = 0.01
"""Learning rates below come to nothing in few epochs."""


class SearchSpace:
    """The values that some fields of a configuration may take: a grid, or several; the rest is of ``base``.

    Parameters
    ----------
    base : RunConfig, optional
    widen : bool
        Whether the best of a search is tried once more with more hidden units, as its model says.
    **values : sequences
        Fields of the model or of training and the values to try; they replace or extend the model's own
        search grids. Of several grids, only those that search such a field are left, and of a word such as
        ``penalty`` only those that have one of these words.

    Examples
    --------
    >>> len(SearchSpace().configs()), len(SearchSpace(RunConfig(model="mlp")).configs())
    (748, 18)
    >>> len(SearchSpace(RunConfig(model="mlp"), hidden=(16, 64), lr=(0.01,)).configs())
    12
    """

    def __init__(
        self, base: RunConfig | None = None, *, widen: bool = False, **values: Sequence[Any]
    ) -> None:
        self.base = base or RunConfig()
        kind = find_model(self.base.model)
        self._wide = kind.wide if widen else None
        for name, tried in values.items():
            if name not in kind.fields and name not in OF_TRAINING:
                raise InputError(unknown_field(kind, name))
            if not tried:
                raise InputError(f"the search space has no value for {name}")
        chosen = {name: tuple(tried) for name, tried in values.items()}
        self.grids: tuple[Grid, ...] = tuple({**grid, **chosen} for grid in _about(kind, chosen))
        """The values of each field that varies."""
        self._start: RunConfig | None = None

    def starting_at(self, start: Mapping[str, Any]) -> SearchSpace:
        """The same space, every draw of which begins with these values, whatever its seed.

        Of fields of the first grid without a value here, or with one that is not to be tried, it has the
        first one.

        Examples
        --------
        >>> space = SearchSpace(RunConfig("mlp"), hidden=(16, 64)).starting_at({"lr": 0.05})
        >>> [(config.value("hidden"), config.lr) for config in space.draw(1, seed=3)]
        [(16, 0.05)]
        """
        grid, space = self.grids[0], copy(self)
        chosen = {
            name: value if (value := start.get(name, values[0])) in values else values[0]
            for name, values in grid.items()
        }
        space._start = self.base.with_values(**chosen)
        return space

    def configs(self) -> list[RunConfig]:
        """All different configurations, in the order of the grids."""
        return list(dict.fromkeys(itertools.chain(*(grid_configs(self.base, grid) for grid in self.grids))))

    def draw(self, count: int, seed: int) -> list[RunConfig]:
        """Draw ``count`` different configurations of the first grid, or all if there are fewer.

        Those of further grids come in addition, the penalties of a pGNN beside its powers: a wider space
        tries all that a narrower one would have tried. They are as many as they would be if the ``count``
        included them and all kinds were drawn equally often.

        The values of the model's fields ``even_over`` (penalty and p of a pGNN) are drawn equally often, up
        to one, as far as there are enough. Within each of them, the values of every other field are drawn
        equally often, up to one as long as most of the space is left, and pairs of values as evenly as that
        allows. What the space starts at comes before all of them; they are drawn as they would be without it.
        """
        first: dict[tuple[Any, ...], list[RunConfig]] = {}
        further: dict[tuple[Any, ...], list[RunConfig]] = {}
        for config in self.configs():
            groups = further if self.in_addition(config) else first
            groups.setdefault(self._kind(config), []).append(config)
        beside = self._in_turns(further, seed)
        per_config = len(further) / (len(first) + len(further))
        drawn = list[RunConfig]()
        ordered = self._in_turns(first, seed)
        if self._start is not None:
            ordered = itertools.chain([self._start], (other for other in ordered if other != self._start))
        for number, config in enumerate(itertools.islice(ordered, count)):
            more = int((number + 1) * per_config) - int(number * per_config)
            drawn += [*itertools.islice(beside, more), config]
        return drawn

    def neighbours(self, config: RunConfig) -> list[RunConfig]:
        """Configurations that differ from this one in the value of a single field, as evenly mixed as a draw.

        Examples
        --------
        >>> space = SearchSpace(RunConfig("mlp"), lr=(0.01, 0.05), dropout=(0.0, 0.5), weight_decay=(0.0,))
        >>> [(near.lr, near.value("dropout")) for near in space.neighbours(space.configs()[0])]
        [(0.01, 0.5), (0.05, 0.0)]
        """
        tried = {
            name: {v for grid in self.grids for v in grid.get(name, ())}
            for grid in self.grids
            for name in grid
        }
        names = [name for name, values in tried.items() if len(values) > 1]  # not a unit, which is measured
        near = [
            other
            for other in self.configs()
            if sum(other.value(name) != config.value(name) for name in names) == 1
        ]
        return list(self._spread(near, config.seed, self._kind(config)))

    def widened(self, finalist: RunConfig) -> RunConfig | None:
        """A finalist with more hidden units; None if it is not to be widened.

        Examples
        --------
        >>> space = SearchSpace(RunConfig("mlp"), widen=True)
        >>> space.widened(space.base).value("hidden")
        64
        """
        if self._wide is None or finalist.value("hidden") >= self._wide:
            return None
        return finalist.with_values(hidden=self._wide)

    def in_addition(self, config: RunConfig) -> bool:
        """Whether only further grids have its values of the model's fields ``even_over``."""
        return self._kind(config) not in self._first_kinds

    def _kind(self, config: RunConfig) -> tuple[Any, ...]:
        return tuple(config.value(name) for name in find_model(self.base.model).even_fields)

    @cached_property
    def _first_kinds(self) -> set[tuple[Any, ...]]:
        return {self._kind(config) for config in grid_configs(self.base, self.grids[0])}

    def _in_turns(self, groups: Mapping[tuple[Any, ...], list[RunConfig]], seed: int) -> Iterator[RunConfig]:
        """The configurations of all groups, one of each at a time."""
        turns = itertools.zip_longest(*(self._spread(group, seed, key) for key, group in groups.items()))
        return (config for turn in turns for config in turn if config is not None)

    def _spread(self, configs: Sequence[RunConfig], seed: int, key: tuple[Any, ...]) -> Iterator[RunConfig]:
        """The same in an order that depends on the seed and on what they have in common, ``key``, alone.

        Each one agrees in as few fields as possible with those before it, summed over them: its values are
        the ones drawn least so far. Of several such, it shares the fewest pairs of values with them.
        """
        order = np.random.default_rng([seed, *repr(key).encode()]).permutation(len(configs))
        shuffled = [configs[index] for index in order]
        fields = dict.fromkeys(name for grid in self.grids for name in grid)
        codes = np.array([_codes([config.value(name) for config in shuffled]) for name in fields]).T
        values, pairs = np.zeros((2, len(shuffled)), dtype=np.int64)
        left = np.arange(len(shuffled))
        while left.size:
            place = np.lexsort((pairs[left], values[left]))[0]
            drawn = left[place]
            yield shuffled[drawn]
            left = np.delete(left, place)
            agreements = (codes == codes[drawn]).sum(1)
            values += agreements
            pairs += agreements**2


def _codes(values: Sequence[Any]) -> list[int]:
    """A number for each value, equal for equal ones."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def architectures(base: RunConfig, *, widen: bool = False, **values: Sequence[Any]) -> list[SearchSpace]:
    """The searches of a model: one for each of its architectures, or its own grid where it names none.

    Parameters
    ----------
    base : RunConfig
    widen : bool
        As for :class:`SearchSpace`.
    **values : sequences
        As for :class:`SearchSpace`, in place of what the architectures say.

    Examples
    --------
    >>> [space.grids[0]["layers"] for space in architectures(RunConfig("deep-pgnn"), layers=(2,))]
    [(2,), (2,), (2,)]
    >>> len(architectures(RunConfig("mlp")))
    1
    """
    forms = find_model(base.model).architectures
    if not forms:
        return [SearchSpace(base, widen=widen, **values)]
    return [
        SearchSpace(base, widen=widen, **{**form.grid, **values}).starting_at(form.start) for form in forms
    ]


def _about(kind: ModelKind[Any], chosen: Grid) -> tuple[Grid, ...]:
    """The grids that search the fields for which values were chosen."""
    grids = kind.search_grids
    for name, values in chosen.items():
        searching = tuple(grid for grid in grids if name in grid)
        words = {value for value in values if isinstance(value, str)}
        named = _with_a_word(searching, name, words) or _with_a_word(kind.on_request, name, words)
        grids = named or searching or grids
    return grids


def _with_a_word(grids: tuple[Grid, ...], name: str, words: set[str]) -> tuple[Grid, ...]:
    return tuple(grid for grid in grids if words & {*grid.get(name, ())})


def grid_configs(base: RunConfig, grid: Grid) -> list[RunConfig]:
    """``base`` with every combination of the grid's values; the last field varies fastest."""
    return [
        base.with_values(**dict(zip(grid, values, strict=True)))
        for values in itertools.product(*grid.values())
    ]


def with_measurements(configs: list[RunConfig], graph: Graph, x: Features) -> list[RunConfig]:
    """The configurations, of one model, with what it measures on the data: a pGNN the unit of its penalty."""
    measured = find_model(configs[0].model).measured
    if measured is None:
        return configs
    found = measured([config.parameters for config in configs], graph, x)
    return [config.with_values(**vars(parameters)) for config, parameters in zip(configs, found, strict=True)]


def sharing(spaces: Sequence[SearchSpace]) -> list[SearchSpace]:
    """Those that share the budget of a search: one without edges comes in addition, and costs little."""
    return [space for space in spaces if space.base.uses_edges] or list(spaces)


def count_models(spaces: Sequence[SearchSpace]) -> int:
    """How many models share the budget of a search."""
    return len({space.base.model for space in sharing(spaces)})


def draw_from(
    spaces: Sequence[SearchSpace], count: int, seed: int, graph: Graph, x: Features, *, hurried: bool = False
) -> dict[RunConfig, int]:
    """Different configurations and the number of the space that each is from.

    All models may spend the same, a large one counting as many small ones, and one that does without edges
    that much in addition; the spaces of a model share its part, and each gets a few at least; what a space
    draws in addition is not counted. In a hurry the first is
    the model's own default, and none learns too slowly for it.
    """
    found: dict[RunConfig, int] = {}
    models = [space.base.model for space in spaces]
    unit = epoch_cost(spaces[0].base, graph.num_nodes)
    for number, space in enumerate(spaces):
        configs = space.draw(len(space.configs()) if hurried else count, seed)
        if hurried:
            configs = [config for config in configs if config.lr >= _HURRIED_LR] or configs
            configs = [space.base, *configs][:count]
        configs = with_measurements([config.with_values(seed=seed) for config in configs], graph, x)
        share, spent = count / count_models(spaces) / models.count(space.base.model), 0.0
        for config in configs:
            mine = sum(owner == number for owner in found.values())
            if spent >= share and mine >= min(_FEWEST, count // len(sharing(spaces))):
                break
            if config not in found:
                found[config] = number
                if not space.in_addition(config):
                    spent += epoch_cost(config, graph.num_nodes) / unit
    return found


def near_to(
    leader: RunConfig,
    spaces: Sequence[SearchSpace],
    tried: Mapping[RunConfig, int],
    graph: Graph,
    x: Features,
    allowance: float,
) -> dict[RunConfig, int]:
    """Neighbours of a candidate in its space that were not ``tried`` yet, with the number of that space.

    As many as cost the allowance, in units of :func:`epoch_cost`, and a few whatever they cost.
    """
    number = tried[leader]
    near = [config.with_values(seed=leader.seed) for config in spaces[number].neighbours(leader)]
    near = [config for config in with_measurements(near, graph, x) if config not in tried] if near else []
    spent = itertools.accumulate(epoch_cost(config, graph.num_nodes) for config in near)
    affordable = sum(cost <= allowance for cost in spent)
    return dict.fromkeys(near[: max(affordable, _FEWEST)], number)
