"""Only characters that the terminal can show, and none that would command it. Each is as wide as what it stands for."""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

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
    """A renderable in such characters."""

    def __init__(self, inner: RenderableType, glyphs: Glyphs) -> None:
        self._inner, self._glyphs = inner, glyphs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Neighbours of one style are sent as one: a chart's columns would each bring their own escape sequences over the network.
        for segment in Segment.simplify(console.render(self._inner, options)):
            yield segment if segment.control else Segment(self._glyphs.text(segment.text), segment.style)
