"""Waits for what another thread or process does."""

import time
from collections.abc import Callable


def until(what: Callable[[], object], told: Callable[[], object] = lambda: None) -> None:
    """``what`` is so, within a minute; ``told``: what is said if not."""
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, told()
        time.sleep(0.005)
