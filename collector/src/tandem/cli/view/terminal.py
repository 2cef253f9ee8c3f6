"""What can be shown where the output goes (a screen, which characters, colours), and the live view that is drawn there."""

from __future__ import annotations

import codecs
import contextlib
import curses
import queue
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

T = TypeVar("T")
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
"""In the order of setlocale(3): the first that is set decides."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """``screen``: a cursor can be moved there. ``charset``: a codec's name."""

    screen: bool
    colours: bool
    charset: str


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


def watch(statuses: Iterator[dict[str, Any]], terminal: Terminal) -> None:
    """Draw the newest status until they end: when one comes, when the terminal changes its size, and when none comes for too long. What
    reading them raises is raised here."""
    from rich.live import Live  # loaded late, like the screen: plain lines need neither

    from tandem.cli.view.screen import screen

    heard: queue.SimpleQueue[dict[str, Any] | Exception | Literal["resized", "ended"]] = queue.SimpleQueue()

    def read() -> None:
        # However slowly the terminal draws: a collector gives up a watcher that is slow.
        try:
            for status in statuses:
                heard.put(status)
            heard.put("ended")
        except Exception as error:  # noqa: BLE001 raised again where it is waited for
            heard.put(error)

    console = Console(highlight=False, no_color=None if terminal.colours else True)
    glyphs = Glyphs(terminal.charset)
    newest: dict[str, Any] | None = None
    failure: Exception | None = None
    ended = False
    drawn: ConsoleDimensions | None = None
    came_s = time.monotonic()
    threading.Thread(target=read, name="statuses", daemon=True).start()
    before = signal.signal(signal.SIGWINCH, lambda _number, _frame: heard.put("resized"))
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            # rich restores the terminal when this ends by an exception, which SIGTERM is none of by itself.
            signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
            while not ended:
                said = _said(heard, 1.0)
                for one in said:
                    if isinstance(one, dict):
                        newest, came_s = one, time.monotonic()
                    elif one != "resized":
                        ended, failure = True, one if isinstance(one, Exception) else None
                silent_s = time.monotonic() - came_s
                size = console.size  # a terminal that is not ours to control sends no signal: look
                if newest is not None and (said or silent_s >= SILENT_S or size != drawn):
                    drawn = size
                    picture = screen(newest, size.width, size.height, silent_s if silent_s >= SILENT_S else None)
                    live.update(Shown(picture, glyphs), refresh=True)
    finally:
        signal.signal(signal.SIGWINCH, before)
    if failure is not None:
        raise failure


def _said(heard: queue.SimpleQueue[T], seconds: float) -> list[T]:
    """What waits, or what comes first within ``seconds``."""
    found: list[T] = []
    with contextlib.suppress(queue.Empty):
        found.append(heard.get(timeout=seconds))
        while True:
            found.append(heard.get_nowait())
    return found
