"""What can be shown where the output goes: whether a screen can be drawn there, in which characters, with colours or without."""

from __future__ import annotations

import codecs
import curses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
"""As setlocale(3) asks them: the first that is set decides."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """``screen``: a cursor can be moved there. ``charset``: a codec's name."""

    screen: bool
    colours: bool
    charset: str

    def in_ascii(self) -> Terminal:
        """The same with ASCII characters only."""
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
        told = Path("/proc/self/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(entry.partition("=")[::2] for entry in told.split("\0") if "=" in entry)
