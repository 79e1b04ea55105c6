"""Whether the files of a benchmark are the published ones."""

from __future__ import annotations

import os
from dataclasses import dataclass

from plap.data.files import holding_folder, missing, search_folders, verify
from plap.data.registry import Benchmark
from plap.errors import InputError


@dataclass(frozen=True)
class Verification:
    """What became of checking one benchmark's files."""

    name: str
    folder: str | None
    """The data folder that holds all files; None if no folder does."""
    missing: tuple[str, ...]
    """Files that the first data folder lacks, if no folder holds all."""
    wrong: tuple[str, ...]
    """A sentence on every file that is not the published one or cannot be read."""
    sums: dict[str, str]
    """SHA-256 of every file that passed, by path."""
    unchecked: tuple[str, ...]
    """Files whose published sum plap does not know."""

    @property
    def status(self) -> str:
        """``missing``, ``wrong``, ``unchecked`` or ``ok``."""
        if self.folder is None:
            return "missing"
        if self.wrong:
            return "wrong"
        return "unchecked" if self.unchecked else "ok"


def verify_benchmark(benchmark: Benchmark, root: str | os.PathLike[str] | None = None) -> Verification:
    """Check every file of ``benchmark`` against the SHA-256 of the published one."""
    folder = holding_folder(benchmark, root)
    if folder is None:
        absent = missing(benchmark, search_folders(root)[0])
        return Verification(benchmark.name, None, tuple(file.path for file in absent), (), {}, ())
    wrong, sums = [], {}
    for file in benchmark.files:
        try:
            sums[file.path] = verify(file, folder)
        except InputError as error:
            wrong.append(str(error))
    unchecked = tuple(file.path for file in benchmark.files if file.sha256 is None)
    return Verification(benchmark.name, str(folder), (), tuple(wrong), sums, unchecked)
