"""What was found, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from plap.report.content import Score


def finding(scores: Sequence[Score], held_out: int, metric: str = "accuracy") -> str:
    """Say how good the first score is and, where that was tested, whether it differs from the others.

    Examples
    --------
    >>> mlp = Score("MLP", 0.74, 0.71, 0.77, differs=True, uses="features alone")
    >>> print(finding([Score("PGNN", 0.86, 0.84, 0.88), mlp], 900))
    On 900 held-out nodes PGNN reaches an accuracy of 86.0 % (95 % interval 84.0 to 88.0).
    It is better than MLP (features alone, 74.0 %).
    """
    model, *others = scores
    nodes = "1 held-out node" if held_out == 1 else f"{held_out} held-out nodes"
    text = f"On {nodes} {model.name} reaches {_article(metric)} {metric} of {_percent(model.value)}"
    if model.low is not None and model.high is not None:
        text += f" (95 % interval {100 * model.low:.1f} to {100 * model.high:.1f})"
    groups = {
        "better than": [score for score in others if score.differs and score.value < model.value],
        "not clearly different from": [score for score in others if score.differs is False],
        "worse than": [score for score in others if score.differs and score.value > model.value],
    }
    parts = [f"{relation} {_list(group)}" for relation, group in groups.items() if group]
    return f"{text}." + (f" It is {_join(parts)}." if parts else "")


def _list(scores: Sequence[Score]) -> str:
    return _join(
        [f"{score.name} ({', '.join(filter(None, [score.uses, _percent(score.value)]))})" for score in scores]
    )


def _join(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" else "a"
