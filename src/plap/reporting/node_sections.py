"""What a page shows of single nodes: how their predictions came about, and where they lie on a map.

First the content as plain values, then the positions of everything in its figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plap.reporting.number_text import percent, shown
from plap.reporting.palette import LineStyle, class_styles
from plap.reporting.svg_figures import WIDTH


@dataclass(frozen=True)
class FeaturePart:
    """What one column, or one feature, of a node has to do with its prediction."""

    name: str
    value: str
    """The cell of the table, or the number."""
    without: float
    """The prediction if it were average."""


@dataclass(frozen=True)
class NeighbourPart:
    """What an edge has to do with the prediction of the node in the middle."""

    name: str
    predicted: str
    kind: int
    """The predicted class; 0 where there are none."""
    without: float
    """The prediction if the edge were not there."""
    trust: float | None
    """Odds against chance (:func:`plap.insight.edge_trust`); None if the edge was not judged."""


@dataclass(frozen=True)
class NodeStory:
    """How the prediction of one node would change if something about it were different."""

    node: str
    why: str
    """Why this node is shown."""
    predicted: str
    kind: int
    known: str | None
    prediction: float
    without_edges: float
    average_features: float
    features: Sequence[FeaturePart]
    """Those with the largest effect, the largest first."""
    num_features: int
    """Columns or features, those that are not shown included."""
    neighbours: Sequence[NeighbourPart]
    num_neighbours: int
    links: Sequence[tuple[int, int]] = ()
    """Pairs of neighbours, by their positions, that have an edge too."""
    hops: int | None = None
    """How far the surroundings reach that were looked at, if that is less than the model does."""


@dataclass(frozen=True)
class MapNode:
    """A held-out node on the map."""

    name: str
    x: float
    y: float
    kind: int
    """The true class."""
    predicted: int


@dataclass(frozen=True)
class NodeSections:
    """The parts of a page about single nodes; a part that is empty is left out."""

    stories: Sequence[NodeStory] = ()
    share: bool = True
    """Whether predictions are probabilities."""
    classes: Sequence[str] = ()
    map: Sequence[MapNode] = ()
    held_out: int = 0
    """Nodes that the map was drawn from."""
    map_hops: int | None = None
    """How far the surroundings reach that the map was made from, if that is less than the model looks."""

    def shown(self, value: float) -> str:
        """A prediction as text."""
        return percent(value) if self.share else shown(value, share=False)

    def effect(self, story: NodeStory, without: float) -> str:
        """By how much something raises the prediction, with its sign; shares in percentage points."""
        value = story.prediction - without
        size = f"{100 * abs(value):.1f}" if self.share else shown(abs(value), share=False)
        return size if not float(size.replace(",", "")) else f"{'+' if value > 0 else '−'}{size}"

    def direction(self, story: NodeStory, without: float) -> str:
        """``for`` if it raises the prediction, ``against`` if it lowers it, otherwise ``neutral``."""
        return {"+": "for", "−": "against"}.get(self.effect(story, without)[0], "neutral")

    @property
    def wrong(self) -> int:
        """Nodes of the map that are predicted wrongly."""
        return sum(node.kind != node.predicted for node in self.map)


@dataclass(frozen=True)
class Spoke:
    """A neighbour in the picture of a neighbourhood."""

    x: float
    y: float
    name: str
    anchor: str
    text_x: float
    text_y: float
    width: float
    """Of its edge: the more it is trusted, the wider."""
    effect: str
    """"for", "against" or "neutral"."""
    judged: bool
    style: LineStyle
    title: str


@dataclass(frozen=True)
class StarFigure:
    """A node in the middle and its neighbours around it."""

    spokes: tuple[Spoke, ...]
    links: tuple[tuple[Spoke, Spoke], ...]
    style: LineStyle
    name: str
    width: float = WIDTH
    height: float = 250
    x: float = WIDTH / 2
    y: float = 125


@dataclass(frozen=True)
class MapDot:
    """A node of the map."""

    x: float
    y: float
    wrong: bool
    title: str


@dataclass(frozen=True)
class MapFigure:
    """Dots by their true class."""

    groups: tuple[tuple[int, str, LineStyle, tuple[MapDot, ...]], ...]
    width: float = 640
    height: float = 440


_RADII = (118, 96)
_MARGIN = 12


def star_figure(story: NodeStory, sections: NodeSections) -> StarFigure:
    """The neighbours of a node around it, in the order of the table; width is trust, colour is the effect."""
    styles = class_styles(max(len(sections.classes), 1))
    empty = StarFigure((), (), styles[story.kind], _short(story.node, 16))
    spokes = []
    for k, part in enumerate(story.neighbours):
        angle = 2 * math.pi * (k + 0.5) / len(story.neighbours) - math.pi / 2
        across, down = math.cos(angle), math.sin(angle)
        share = 0.5 if part.trust is None else part.trust / (1 + part.trust)
        x, y = empty.x + _RADII[0] * across, empty.y + _RADII[1] * down
        spokes.append(
            Spoke(
                round(x, 1), round(y, 1), _short(part.name, 9),
                "middle" if abs(across) < 0.3 else "start" if across > 0 else "end",
                round(x + 10 * across, 1), round(y + 14 * down + 4, 1), round(1 + 9 * share, 2),
                sections.direction(story, part.without),
                part.trust is not None, styles[part.kind],
                f"{part.name}, predicted {part.predicted}: effect {sections.effect(story, part.without)}, "
                + ("trust not known" if part.trust is None else f"trust {part.trust:.3g}"),
            )
        )  # fmt: skip
    links = tuple((spokes[i], spokes[j]) for i, j in story.links)
    return StarFigure(tuple(spokes), links, empty.style, empty.name)


def _short(text: str, length: int) -> str:
    """At most so many characters; what is cut out is in the middle, because names often differ at the end."""
    half = length // 2
    return text if len(text) <= length else f"{text[: length - half - 1]}…{text[-half:]}"


def map_figure(sections: NodeSections) -> MapFigure:
    """The nodes by their true class, wrongly predicted ones marked, on equal scales along both axes."""
    empty = MapFigure(())
    across, down = [node.x for node in sections.map], [node.y for node in sections.map]
    span = max(
        (max(across) - min(across)) / (empty.width - 2 * _MARGIN),
        (max(down) - min(down)) / (empty.height - 2 * _MARGIN),
        1e-12,
    )
    middle = ((max(across) + min(across)) / 2, (max(down) + min(down)) / 2)
    styles = class_styles(len(sections.classes))
    groups = []
    for kind, name in enumerate(sections.classes):
        dots = tuple(
            MapDot(
                round(empty.width / 2 + (node.x - middle[0]) / span, 1),
                round(empty.height / 2 + (node.y - middle[1]) / span, 1),
                node.predicted != kind,
                f"{node.name}: {name}"
                + (f", predicted {sections.classes[node.predicted]}" if node.predicted != kind else ""),
            )
            for node in sections.map
            if node.kind == kind
        )
        if dots:
            groups.append((kind, name, styles[kind], dots))
    return MapFigure(tuple(groups))
