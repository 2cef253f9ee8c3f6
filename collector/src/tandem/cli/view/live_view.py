"""Draws the newest status on the terminal: when one comes, when the terminal changes its size, and when none comes for too long."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from rich.console import Console, ConsoleDimensions
from rich.live import Live

from tandem.cli.view.glyphs import Glyphs, Shown
from tandem.cli.view.screen import screen
from tandem.cli.view.terminal import Terminal

SILENT_S = 5.0
"""A collector tells something each second; after so long without a word the picture says so."""


class Newest:
    """The newest of ``statuses``, which a thread reads however slowly the terminal draws: a collector gives up a watcher that is slow.

    ``descriptor`` becomes readable when there is a newer one, when they have ended, and by ``wake``.
    """

    def __init__(self, statuses: Iterator[dict[str, Any]]) -> None:
        self.descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.status: dict[str, Any] | None = None
        self.came_s = time.monotonic()
        self.ended = False
        self.failure: Exception | None = None
        self._statuses = statuses
        threading.Thread(target=self._read, name="statuses", daemon=True).start()

    def wake(self) -> None:
        """Let who waits look again. A signal handler may call it."""
        os.eventfd_write(self.descriptor, 1)

    def wait(self, seconds: float) -> bool:
        """Until woken, at most ``seconds``; whether it was."""
        woken = bool(select.select([self.descriptor], [], [], seconds)[0])
        if woken:
            os.eventfd_read(self.descriptor)
        return woken

    @property
    def silent_s(self) -> float | None:
        """For how long there has been no word, where that is too long."""
        silent_s = time.monotonic() - self.came_s
        return silent_s if silent_s >= SILENT_S else None

    def _read(self) -> None:
        try:
            for status in self._statuses:
                self.status, self.came_s = status, time.monotonic()
                self.wake()
        except Exception as error:  # noqa: BLE001 raised again where it is waited for
            self.failure = error
        self.ended = True
        self.wake()


def watch(statuses: Iterator[dict[str, Any]], terminal: Terminal) -> None:
    """Until they end. What reading them raises is raised here."""
    newest = Newest(statuses)
    console = Console(highlight=False, no_color=None if terminal.colours else True)
    glyphs = Glyphs(terminal.charset)
    drawn: ConsoleDimensions | None = None
    before = _on(signal.SIGWINCH, newest.wake)
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            # rich restores the terminal when this ends by an exception, which SIGTERM is none of by itself.
            signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
            while not newest.ended:
                woken = newest.wait(1.0)
                size = console.size  # a terminal that is not ours to control tells of no change: look
                if newest.status is not None and (woken or newest.silent_s is not None or size != drawn):
                    drawn = size
                    picture = screen(newest.status, size.width, size.height, newest.silent_s)
                    live.update(Shown(picture, glyphs), refresh=True)
    finally:
        signal.signal(signal.SIGWINCH, before)
    if newest.failure is not None:
        raise newest.failure


def _on(number: signal.Signals, call: Callable[[], None]) -> Any:  # noqa: ANN401 as signal.signal has it
    def handler(_number: int, _frame: FrameType | None) -> None:
        call()

    return signal.signal(number, handler)
