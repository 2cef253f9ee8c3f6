"""The letters of the e-paper: 5 × 8 dots each, drawn in ``glyphs.txt``. Pure but for reading that file once.

Letters of its own, since Pillow's differ between the releases of Raspberry Pi OS (9.4 in bookworm, 11 in trixie): so the picture is
the same everywhere, is compared dot by dot in tests, and costs the probe no package.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files

WIDTH, HEIGHT = 5, 8
ADVANCE = WIDTH + 1
Glyph = tuple[tuple[bool, ...], ...]
_UNKNOWN: Glyph = tuple(
    tuple(row in (0, 6) or column in (0, 4) for column in range(5)) if row < 7 else (False,) * 5 for row in range(8)
)
_SPELT = {
    "ß": "ss",
    "æ": "ae",
    "Æ": "AE",
    "ø": "o",
    "Ø": "O",
    "đ": "d",
    "Đ": "D",
    "ł": "l",
    "Ł": "L",
    "ı": "i",
    "–": "-",
    "—": "-",
    "’": "'",
    "…": "...",
}


@cache
def glyphs() -> dict[str, Glyph]:
    """By letter, its rows of dots."""
    lines = files(__package__).joinpath("glyphs.txt").read_text(encoding="ascii").splitlines()
    found: dict[str, Glyph] = {" ": ((False,) * WIDTH,) * HEIGHT}
    for first in range(0, len(lines), HEIGHT + 1):
        rows = [line.split() for line in lines[first + 1 : first + 1 + HEIGHT]]
        for letter, *drawn in zip(lines[first].split()[1:], *rows, strict=True):
            found[letter] = tuple(tuple(dot == "#" for dot in row) for row in drawn)
    return found


def spelt(text: str) -> str:
    """With letters that are drawn: accents are left out, and what there is none for stays as it is, to be seen as a box."""
    plain = unicodedata.normalize("NFKD", "".join(_SPELT.get(letter, letter) for letter in text))
    return " ".join("".join(letter for letter in plain if not unicodedata.combining(letter)).split())


def glyph(letter: str) -> Glyph:
    """Its dots; a box for a letter that is not drawn."""
    return glyphs().get(letter, _UNKNOWN)


def wrapped(text: str, width: int, lines: int) -> list[str]:
    """At most ``lines`` of at most ``width`` letters, broken between words where that can be; what does not fit ends in "..."."""
    made: list[str] = []
    for word in spelt(text).split(" "):
        left = word
        while left:
            if made and len(made[-1]) + 1 + len(left) <= width:
                made[-1] += f" {left}"
                left = ""
            else:
                made.append(left[:width])
                left = left[width:]
    if len(made) > lines:
        made = made[:lines]
        made[-1] = made[-1][: max(0, width - 3)].rstrip() + "..."[:width]
    return made
