"""What can be shown where the output goes (a screen, which characters, colours), and the live view that is drawn there."""

from __future__ import annotations

import codecs
import curses
import os
import select
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
"""In the order of setlocale(3): the first that is set decides."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """``screen``: a cursor can be moved there. ``charset``: a codec's name."""

    screen: bool
    colours: bool
    charset: str

    def in_ascii(self) -> Terminal:
        return replace(self, charset="ascii")


def terminal(stream: TextIO, environment: Mapping[str, str]) -> Terminal:
    """Where ``stream`` goes. A terminal that terminfo does not know (a new one, over SSH) is taken for a capable one."""
    name = environment.get("TERM", "")
    colours, screen = True, True
    if name not in ("", "dumb", "unknown") and stream.isatty():
        try:
            curses.setupterm(name, stream.fileno())
            colours, screen = curses.tigetnum("colors") > 1, bool(curses.tigetstr("cup"))
        except curses.error:
            pass  # terminfo has no such terminal
    else:
        screen = False
    return Terminal(screen, colours and not environment.get("NO_COLOR"), charset(environment))


def charset(environment: Mapping[str, str]) -> str:
    """The characters that the locale promises; ASCII where it promises nothing (C, POSIX, unset, or a codec that Python has not)."""
    named = next((value for name in _LOCALE if (value := environment.get(name))), "")
    try:
        return codecs.lookup(named.partition(".")[2].partition("@")[0] or "ascii").name
    except LookupError:
        return "ascii"


def own_environment() -> dict[str, str]:
    """As this process was given it: Python puts a UTF-8 locale into its own where it finds none (PEP 538). Empty without /proc."""
    try:
        content = Path("/proc/self/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(entry.partition("=")[::2] for entry in content.split("\0") if "=" in entry)


_INSTEAD = {
    **dict.fromkeys("▁▂", "_"), **dict.fromkeys("▃▄", "-"), **dict.fromkeys("▅▆", "="), **dict.fromkeys("▇█", "#"),
    **dict.fromkeys("▏▎▍", "-"), **dict.fromkeys("▌▋▊▉", "="), **dict.fromkeys("─━", "-"), **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("╭╮╰╯┌┐└┘├┤", "+"), "·": ".", "–": "-", "−": "-", "→": ">", "…": "~", "✓": "+", "✗": "x",
    "▶": ">", "■": "=", "×": "x", "±": "+", "µ": "u", "°": " ", "’": "'",
}  # fmt: skip


class Glyphs(dict[int, str]):
    """Text as ``charset`` (a codec's name) can show it. What it has no character for becomes a like one, or ``?``; control characters,
    which a modem's or a server's words may hold, become ``?``."""

    def __init__(self, charset: str) -> None:
        super().__init__({ord("\n"): "\n"})
        self._charset = charset

    def __missing__(self, code: int) -> str:
        self[code] = instead = self._instead(chr(code))
        return instead

    def _instead(self, character: str) -> str:
        category = unicodedata.category(character)
        if category == "Cf":
            return ""  # has no width: joiners, and what turns the direction of writing
        if category in ("Cc", "Zl", "Zp"):
            return "?"
        try:
            character.encode(self._charset)
        except UnicodeEncodeError:
            return _INSTEAD.get(character, "?" * cell_len(character))
        return character

    def text(self, text: str) -> str:
        """``text`` as it can be shown; a line's end stays one."""
        return text.translate(self)


class Shown:
    def __init__(self, inner: RenderableType, glyphs: Glyphs) -> None:
        self._inner, self._glyphs = inner, glyphs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Neighbours of one style are sent as one: a chart's columns would each bring their own escape sequences over the network.
        for segment in Segment.simplify(console.render(self._inner, options)):
            yield segment if segment.control else Segment(self._glyphs.text(segment.text), segment.style)


SILENT_S = 5.0
"""A collector reports each second; after so long without a report the screen says so."""


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
    """Draw the newest status until they end: when one comes, when the terminal changes its size, and when none comes for too long. What
    reading them raises is raised here."""
    from rich.live import Live  # loaded late, like the screen: plain lines need neither

    from tandem.cli.view.screen import screen

    newest = Newest(statuses)
    console = Console(highlight=False, no_color=None if terminal.colours else True)
    glyphs = Glyphs(terminal.charset)
    drawn: ConsoleDimensions | None = None
    before = signal.signal(signal.SIGWINCH, lambda _number, _frame: newest.wake())
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            # rich restores the terminal when this ends by an exception, which SIGTERM is none of by itself.
            signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
            while not newest.ended:
                woken = newest.wait(1.0)
                size = console.size  # a terminal that is not ours to control sends no signal: look
                if newest.status is not None and (woken or newest.silent_s is not None or size != drawn):
                    drawn = size
                    picture = screen(newest.status, size.width, size.height, newest.silent_s)
                    live.update(Shown(picture, glyphs), refresh=True)
    finally:
        signal.signal(signal.SIGWINCH, before)
    if newest.failure is not None:
        raise newest.failure
