"""What holds for every test.

Property tests try the same examples at every run of ``make test``, and new ones at every run of
``make test-all``; no example has a time limit, because its time depends on what else the machine is doing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """Handle SIGINT as Python does by default, also below a parent that ignores it, such as ``nohup``.

    Child processes inherit that a signal is ignored, but not a handler: they start with the default, too.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
