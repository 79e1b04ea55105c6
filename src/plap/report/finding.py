"""What was found, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from plap.report.content import Score


def finding(scores: Sequence[Score], held_out: int, metric: str = "accuracy") -> str:
    """Say how good the first score is and whether it differs from the others.

    Two scores differ where neither's value lies in the other's interval.

    Examples
    --------
    >>> mlp = Score("MLP", 0.74, 0.71, 0.77, "features alone")
    >>> print(finding([Score("PGNN", 0.86, 0.84, 0.88), mlp], 900))
    On 900 held-out nodes PGNN reaches an accuracy of 86.0 % (95 % interval 84.0 to 88.0).
    It is better than MLP (features alone, 74.0 %).
    """
    model, *others = scores
    text = (
        f"On {held_out} held-out nodes {model.name} reaches {_article(metric)} {metric} of {model.value:.1%}"
    )
    text = text.replace("%", " %")
    if model.low is not None and model.high is not None:
        text += f" (95 % interval {100 * model.low:.1f} to {100 * model.high:.1f})"
    groups = {
        "better than": [score for score in others if _differ(model, score) and score.value < model.value],
        "not clearly different from": [score for score in others if not _differ(model, score)],
        "worse than": [score for score in others if _differ(model, score) and score.value > model.value],
    }
    parts = [f"{relation} {_list(group)}" for relation, group in groups.items() if group]
    return f"{text}." + (f" It is {_join(parts)}." if parts else "")


def _differ(one: Score, other: Score) -> bool:
    return not (_inside(one.value, other) or _inside(other.value, one))


def _inside(value: float, score: Score) -> bool:
    low = score.value if score.low is None else score.low
    high = score.value if score.high is None else score.high
    return low <= value <= high


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
