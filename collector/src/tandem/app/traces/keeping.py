"""When the probe's copies of what the server has may go. Never anything without a receipt."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable

from tandem.app.config_traces import TracesConfig
from tandem.app.parts import CapturesLike
from tandem.export import Kept, TraceQueue

log = logging.getLogger(__name__)

_FULL = 0.8
"""Of the captures' budget: there is to be room for what is captured until the next look."""
_EVERY_S = 10.0


class Keeping:
    """A thread, since deleting a large file may take an SD card a while. ``free``: bytes free on the disk."""

    def __init__(
        self,
        rules: TracesConfig,
        queue: TraceQueue,
        captures: CapturesLike | None,
        free: Callable[[], int] | None = None,
    ) -> None:
        self._rules, self._queue, self._captures = rules, queue, captures
        self._free = free or (lambda: shutil.disk_usage(queue.folder).free)
        self._wake, self._stopping = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="traces kept", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Something was received."""
        self._wake.set()

    def stop(self) -> None:
        """End."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()

    def tidy(self) -> list[str]:
        """Delete what is to go now, what was received first before all others; the names."""
        gone = []
        for one in self._queue.kept():
            if self._rules.keep == "while_room" and not self._in_the_way(one):
                continue
            if self._queue.delete(one):
                gone.append(one.name)
                if self._captures is not None and one.name.startswith("captures/"):
                    self._captures.give_back(one.bytes)
        return gone

    def _in_the_way(self, one: Kept) -> bool:
        if self._free() < self._rules.free_bytes:
            return True
        captures = self._captures
        return (
            captures is not None
            and one.name.startswith("captures/")
            and captures.used_bytes > _FULL * captures.limit_bytes
        )

    def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                gone = self.tidy()
                if gone:
                    log.info("the server has them, and they made room here: %s", ", ".join(gone))
            except OSError as error:
                log.error("%s: %s", error.filename, error.strerror)
            self._wake.wait(_EVERY_S)
