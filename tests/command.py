"""The plap command in this process."""

from __future__ import annotations

import sys

import pytest

from plap.cli import main


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of ``plap ARGUMENTS``."""
    monkeypatch.setattr(sys, "argv", ["plap", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)
