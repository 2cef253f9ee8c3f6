"""Keeps the e-paper true, on a thread of its own: what it does, and how long it takes, holds up nothing else."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from tandem.indicator.e_paper.page import Page

log = logging.getLogger(__name__)

SOONEST_S = 180.0
"""The maker asks for three minutes between refreshes."""


class Showing:
    """``draw`` puts a page on the panel, OSError or TimeoutError when that fails; then it is tried again after ``soonest_s``."""

    def __init__(self, draw: Callable[[Page], None], soonest_s: float = SOONEST_S) -> None:
        self._draw, self._soonest_s = draw, soonest_s
        self._wanted: Page | None = None
        self._shown: Page | None = None
        self._changed = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="e-paper", daemon=True)
        self.refreshes, self.failures = 0, 0
        self.trouble: str | None = None
        """The last failure, until a page was shown again."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def tell(self, page: Page) -> None:
        """This is to be shown. From any thread, at no cost when it is what was told before."""
        if page != self._wanted:
            self._wanted = page
            self._changed.set()

    def close(self, last: Page | None = None, timeout_s: float = 15.0) -> None:
        """Show a last page at once, whenever the one before was: the panel keeps it without power. Gives up after ``timeout_s``."""
        if last is not None:
            self._wanted = last
        self._ending.set()
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                log.warning("e-paper: the last page was not shown within %g s", timeout_s)

    def _run(self) -> None:
        while not self._ending.is_set():
            self._changed.wait()
            self._changed.clear()
            if self._ending.is_set() or self._wanted == self._shown:
                continue
            done = self._show()
            self._ending.wait(self._soonest_s)
            if not done:
                self._changed.set()
        self._show()

    def _show(self) -> bool:
        page = self._wanted
        if page is None or page == self._shown:
            return True
        began_s = time.monotonic()
        try:
            self._draw(page)
        except (OSError, TimeoutError) as error:
            self.failures += 1
            self._shown = None  # whatever it shows now
            if self.trouble is None:
                log.warning("e-paper: %s; measuring goes on", error)
            self.trouble = str(error)
            return False
        self._shown, self.trouble = page, None
        self.refreshes += 1
        log.info("e-paper: %s, in %.1f s", page.state.name, time.monotonic() - began_s)
        return True
