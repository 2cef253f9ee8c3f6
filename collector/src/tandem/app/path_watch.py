"""Keeps the paths' routes and endpoints as they must be, on a thread of its own: ``ip`` may take its time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tandem.app.parts import EnvironmentLackError, PathChange, PathsLike

log = logging.getLogger(__name__)

_AGAIN_S = 1.0


class PathWatch:
    """Sleeps until the kernel tells of a change (no polling, no program started), then has it mended and tells."""

    def __init__(self, paths: PathsLike, changed: Callable[[list[PathChange]], None]) -> None:
        self._paths, self._changed = paths, changed
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
            self._paths.wake()
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                changes = self._paths.watch()
                self._trouble = None
            except EnvironmentLackError as error:
                if str(error) != self._trouble:
                    log.warning("paths: %s", error)
                self._trouble = str(error)
                self._stop.wait(_AGAIN_S)
                continue
            if changes:
                self._changed(changes)
