"""Labels of any type to class numbers, and what counts as unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.errors import InputError

Classes = NDArray[Any]
Codes = NDArray[np.int64]

_MISSING_TYPES = ("NAType", "NaTType")
"""How pandas calls its missing values; pandas need not be installed."""


def encode(y: Any, unknown: Any = None) -> tuple[Classes, Codes]:
    """Number the classes 0, 1, … in ascending order.

    Unknown is None, NaN or −1; labels of exactly −1 and 1 are two classes. Whole numbers stay integers even
    where NaN made floats of them; strings, booleans and integers may not be mixed.

    Parameters
    ----------
    y : sequence, array or tensor, shape [N]
        Strings, integers, booleans or whole floats.
    unknown : str or number, optional
        Another mark of an unknown label.

    Returns
    -------
    classes : array, shape [number of classes]
        Of the type of the labels.
    codes : int64 array, shape [N]
        Positions in ``classes``, −1 where unknown.

    Examples
    --------
    >>> encode(["cat", None, "dog", "cat"])
    (array(['cat', 'dog'], dtype='<U3'), array([ 0, -1,  1,  0]))
    >>> encode([7.0, float("nan"), 3.0])
    (array([3, 7]), array([ 1, -1,  0]))
    >>> encode([-1, 1, 1])
    (array([-1,  1]), array([0, 1, 1]))
    """
    labels = _array(y)
    known = _filled(labels, unknown)
    if not is_signs(labels[known]):
        known &= ~_is_minus_one(labels)
    if not known.any():
        raise InputError("y has no known label: all are None, NaN or -1")
    classes, numbers = np.unique(_plain(labels, known), return_inverse=True)
    codes = np.full(labels.size, -1, dtype=np.int64)
    codes[known] = numbers.ravel()
    return classes, codes


def codes_of(y: Any, classes: Classes, unknown: Any = None) -> Codes:
    """Positions of labels in given classes, −1 where unknown; a class that is not among them is refused.

    The label −1 is unknown unless it is one of the classes.

    Examples
    --------
    >>> codes_of(["dog", None], np.array(["cat", "dog"]))
    array([ 1, -1])
    """
    labels = _array(y)
    known = _filled(labels, unknown)
    if -1 not in classes.tolist():
        known &= ~_is_minus_one(labels)
    codes = np.full(labels.size, -1, dtype=np.int64)
    if not known.any():
        return codes
    values = _plain(labels, known)
    if values.dtype.kind in "iu" and classes.dtype.kind == "U" and all(map(is_integer, classes)):
        values = values.astype(str)  # the classes of a saved model may be text
    elif values.dtype.kind == "U" and classes.dtype.kind in "iu" and all(map(is_integer, values)):
        values = values.astype(np.int64)  # and those of a table that was read as text are
    if (values.dtype.kind == "U") != (classes.dtype.kind == "U"):
        raise InputError(
            f"y holds {values[:1].tolist()[0]!r}, and the classes are of another type, such as "
            f"{classes[:1].tolist()[0]!r}"
        )
    order = np.argsort(classes)  # as text 10 comes before 9
    positions = order[np.searchsorted(classes, values, sorter=order).clip(max=classes.size - 1)]
    strange = classes[positions] != values
    if strange.any():
        at = int(np.flatnonzero(known)[np.flatnonzero(strange)[0]])
        raise InputError(f"y[{at}] = {values[strange][0]!r} is none of the {classes.size} classes")
    codes[known] = positions
    return codes


def classes_named(names: Sequence[Any]) -> Classes:
    """The classes of a saved model: integers where all names are the text of integers.

    Examples
    --------
    >>> classes_named(("9", "10")), classes_named(("1", "01"))
    (array([ 9, 10]), array(['1', '01'], dtype='<U2'))
    """
    if all(isinstance(name, str) and is_integer(name) and str(int(name)) == name for name in names):
        return np.array(names, dtype=np.int64)
    return np.asarray(names)


def _array(y: Any) -> NDArray[Any]:
    """``y`` as an array of one dimension that kept the type of its labels."""
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    if isinstance(y, np.ndarray) or hasattr(y, "__array__"):
        labels = np.asarray(y)
    else:
        values = list(y)
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
    if labels.ndim != 1:
        raise InputError(f"y must have one label for each node, not shape {list(labels.shape)}")
    return labels


def is_signs(labels: NDArray[Any]) -> bool:
    """Whether labels are numbers, both −1 and 1 and nothing else: two classes rather than unknown and one.

    Examples
    --------
    >>> is_signs(np.array([-1, 1, 1])), is_signs(np.array([-1, 0, 1]))
    (True, False)
    """
    if labels.dtype.kind == "O":
        return {_kind(value) for value in labels} == {"number"} and {float(v) for v in labels} == {-1.0, 1.0}
    return labels.dtype.kind in "if" and set(np.unique(labels).tolist()) == {-1, 1}


def _filled(labels: NDArray[Any], unknown: Any) -> NDArray[np.bool_]:
    """Where there is a label, −1 among them: not None, NaN or the caller's own mark."""
    filled: NDArray[np.bool_] = np.ones(labels.size, dtype=np.bool_)
    if labels.dtype.kind == "O":
        filled = ~np.fromiter(map(_is_missing, labels), dtype=np.bool_, count=labels.size)
    elif labels.dtype.kind == "f":
        filled = ~np.isnan(labels)
    if unknown is not None:
        marked = (isinstance(value, str) == isinstance(unknown, str) and value == unknown for value in labels)
        filled &= ~np.fromiter(map(bool, marked), dtype=np.bool_, count=labels.size)
    return filled


def _is_minus_one(labels: NDArray[Any]) -> NDArray[np.bool_]:
    if labels.dtype.kind == "O":
        numbers = (_kind(value) == "number" and value == -1 for value in labels)
        return np.fromiter(map(bool, numbers), dtype=np.bool_, count=labels.size)
    if labels.dtype.kind in "if":
        return np.asarray(labels == -1)
    return np.zeros(labels.size, dtype=np.bool_)


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    return not isinstance(value, str) and bool(value != value)  # noqa: PLR0124  (only NaN differs from itself)


def _plain(labels: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """The known labels as an array of strings, booleans or integers."""
    values = labels[known]
    if values.dtype.kind == "O":
        kinds = {_kind(value) for value in values}
        if len(kinds) > 1:
            first, second = sorted(kinds)[:2]
            raise InputError(f"y mixes labels of type {first} and {second}; give all as one type")
        values = np.array([value.item() if isinstance(value, np.generic) else value for value in values])
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2**53)
        if not whole.all():
            at = int(np.flatnonzero(known)[np.flatnonzero(~whole)[0]])
            raise InputError(
                f"y[{at}] = {labels[at]!s} is no class: labels are whole numbers, strings or booleans"
            )
        values = values.astype(np.int64)
    if values.dtype.kind not in "biuU":
        raise InputError(f"y must hold strings, whole numbers or booleans, not {values.dtype}")
    return values


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "str"
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, int | float | np.integer | np.floating):
        return "number"
    return type(value).__name__


_MOST_CODES = 20
"""Different whole numbers up to which they are taken for classes."""
_LEAST_FRACTIONS = 5
"""Different numbers from which on fractions among them are taken for measurements."""
_NODES_PER_CODE = 10


def looks_numeric_target(values: NDArray[np.floating[Any]]) -> bool:
    """Whether known labels that are all numbers are to be predicted as numbers rather than as classes.

    Numbers with fractions are, if there are at least 5 different ones. Whole numbers are, if there are more
    than 20 different ones that are not codes: 0 (or 1) to the largest without a gap, with ten nodes each.

    Examples
    --------
    >>> looks_numeric_target(np.arange(9) / 4), looks_numeric_target(np.arange(100.0) % 7)
    (True, False)
    >>> looks_numeric_target(np.arange(100.0) * 1000), looks_numeric_target(np.arange(400.0) % 40)
    (True, False)
    """
    values = values[np.isfinite(values)]
    different = np.unique(values)
    if not (different == np.floor(different)).all():
        return different.size >= _LEAST_FRACTIONS
    if different.size <= _MOST_CODES:
        return False
    codes = different[0] in (0, 1) and different[-1] - different[0] == different.size - 1
    return not (codes and values.size >= _NODES_PER_CODE * different.size)


Names = tuple[str, ...]


def encode_labels(
    labels: NDArray[np.str_], fail: Callable[[int, str], None]
) -> tuple[NDArray[np.int64], Names]:
    """Number the classes 0, 1, … in ascending order, by value if all names are integers.

    Parameters
    ----------
    labels : text array, shape [N]
        "" where unknown.
    fail : function of a row and a problem
        Called for a class that only one node has, which can be in no two of training, validation and test;
        if it raises nothing, the class is numbered as any other.

    Returns
    -------
    y : int64 array, shape [N], -1 where unknown
    class_names : tuple of str

    Examples
    --------
    >>> encode_labels(np.array(["10", "9", "", "9", "10"]), fail=print)
    (array([ 1,  0, -1,  0,  1]), ('9', '10'))
    """
    names, first, number, count = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    known = names != ""
    if (count[known] == 1).any():
        at = int(first[known & (count == 1)].min())
        fail(at, f"the class {str(labels[at])!r} is seen once, and a class needs two nodes at least")
    order = _ascending([str(name) for name in names], np.flatnonzero(known).tolist())
    position = np.full(names.size, -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    return position[number.ravel()], tuple(str(names[k]) for k in order)


def _ascending(names: list[str], known: list[int]) -> list[int]:
    """The classes in order of their values if every one is an integer, of their names otherwise."""
    if all(is_integer(names[k]) for k in known):
        return sorted(known, key=lambda k: (int(names[k]), names[k]))
    return sorted(known, key=lambda k: names[k])


def is_integer(name: str) -> bool:
    """Whether a name is a whole number."""
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19


def rarer_class(labels: Tensor) -> int:
    """The class of two that fewer labels [T] have; 1 if both have as many."""
    sizes = torch.bincount(labels[labels >= 0].long(), minlength=2)[:2]
    return int(sizes[1] <= sizes[0])
