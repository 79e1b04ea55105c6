"""A dataset's name with its parameters, such as ``csbm:phi=-0.5,n=100``, taken apart once."""

from __future__ import annotations

import os
from dataclasses import dataclass

CSBM = "csbm"


@dataclass(frozen=True)
class DatasetName:
    """What stands before the last colon, and the parameters behind it.

    Examples
    --------
    >>> name = DatasetName.parse("csbm:phi=-0.5, n=100")
    >>> name.base, name.value("phi"), str(name)
    ('csbm', '-0.5', 'csbm:phi=-0.5,n=100')
    >>> DatasetName.parse("a:folder/graph").base
    'a:folder/graph'
    """

    base: str
    """A benchmark, ``csbm``, or a path."""
    parameters: tuple[tuple[str, str], ...] = ()
    """As they were written; one that is given twice stands here twice."""

    @classmethod
    def parse(cls, text: str) -> DatasetName:
        """Take a name apart; a colon belongs to the base unless parameters follow it."""
        text = text.strip()
        base, colon, behind = text.rpartition(":")
        if not colon or ("=" not in behind and base.lower() != CSBM):
            return cls(text)
        pairs = (entry.partition("=") for entry in behind.split(",") if entry.strip())
        return cls(base, tuple((key.strip(), value.strip()) for key, _, value in pairs))

    def __str__(self) -> str:
        behind = ",".join(f"{key}={value}" for key, value in self.parameters)
        return f"{self.base}:{behind}" if behind else self.base

    def value(self, key: str) -> str | None:
        """What a parameter is, as it was written; None where the name does not have it."""
        return dict(self.parameters).get(key)

    def without(self, key: str) -> DatasetName:
        """The same without a parameter.

        Examples
        --------
        >>> str(DatasetName.parse("computers:r=0.25").without("r"))
        'computers'
        """
        return DatasetName(self.base, tuple(pair for pair in self.parameters if pair[0] != key))

    def with_base(self, base: str) -> DatasetName:
        """The same parameters behind another base."""
        return DatasetName(base, self.parameters)

    @property
    def is_csbm(self) -> bool:
        """Whether it is a graph that is drawn at random."""
        return self.base.lower() == CSBM

    @property
    def is_path(self) -> bool:
        """Whether it is a file or folder; a bare name is a benchmark's, even where a folder is called so.

        Examples
        --------
        >>> [DatasetName.parse(text).is_path for text in ("texas", "csbm:phi=0.5", "./texas:r=0.5")]
        [False, False, True]
        """
        return os.sep in self.base or "/" in self.base

    @property
    def bare(self) -> DatasetName:
        """The same without the folders in front of it.

        Examples
        --------
        >>> str(DatasetName.parse("own/ours:r=0.5").bare)
        'ours:r=0.5'
        """
        return self.with_base(self.base.replace(os.sep, "/").rpartition("/")[2])
