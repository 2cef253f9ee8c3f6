"""Keeps the paths' routes and endpoints as they must be, on a thread of its own: ``ip`` may take its time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from tandem.app.machine import interface_signature
from tandem.app.parts import EnvironmentLackError, PathChange, PathsLike

log = logging.getLogger(__name__)

_LOOK_S, _CHECK_S = 1.0, 30.0


class PathWatch:
    """Looks once a second, without starting a program, whether an interface changed; checks and mends when it did, and every half
    minute anyway."""

    def __init__(
        self, paths: PathsLike, interfaces: Sequence[str], changed: Callable[[list[PathChange]], None]
    ) -> None:
        self._paths, self._interfaces, self._changed = paths, interfaces, changed
        self._stop = threading.Event()
        self._trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name="paths", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        seen = interface_signature(self._interfaces)
        checked_s = time.monotonic()
        while not self._stop.wait(_LOOK_S):
            now = interface_signature(self._interfaces)
            if now == seen and time.monotonic() - checked_s < _CHECK_S:
                continue
            seen, checked_s = now, time.monotonic()
            try:
                changes = self._paths.check()
                self._trouble = None
            except EnvironmentLackError as error:
                if str(error) != self._trouble:
                    log.warning("paths: %s", error)
                self._trouble = str(error)
                continue
            if changes:
                self._changed(changes)
