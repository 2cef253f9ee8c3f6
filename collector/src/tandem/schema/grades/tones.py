"""What colours mean. Five meanings, each with a mark for where there are no colours; and colours that mean a path, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Tone = Literal["good", "fair", "poor", "notice", "quiet"]
"""``good``, ``fair``, ``poor``: the grades. ``notice``: worth a look, neither good nor poor (a handover, a movement). ``quiet``: not
known, not there, or of no weight."""


@dataclass(frozen=True, slots=True)
class Colour:
    """``terminal``: one of the sixteen named ANSI colours, so that it follows the terminal's own theme. ``web``: sRGB as #RRGGBB.
    ``mark``: ASCII that says it to who sees no colours; empty where nothing needs saying."""

    terminal: str
    web: str
    mark: str = ""


COLOURS: dict[Tone, Colour] = {
    "good": Colour("green", "#73BF69"),
    "fair": Colour("yellow", "#F2CC0C", "!"),
    "poor": Colour("red", "#F2495C", "!!"),
    "notice": Colour("bright_blue", "#5794F2", "*"),
    "quiet": Colour("bright_black", "#8E8E8E"),
}
TONES: tuple[Tone, ...] = tuple(COLOURS)

PATH_COLOURS = (
    Colour("cyan", "#00A6C0"), Colour("magenta", "#B877D9"), Colour("blue", "#3D5AC8"),
    Colour("bright_cyan", "#7AD7E6"), Colour("bright_magenta", "#DEB6F2"), Colour("white", "#C0B283"),
)  # fmt: skip
"""One a path, in the order of their names; none of them is a grade's."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Of a state or a kind of event: ``words`` for people, lower case, and how it is to be seen."""

    words: str
    tone: Tone


def path_colours(names: Iterable[str]) -> dict[str, Colour]:
    """A colour for each path, whatever the order of ``names``; they repeat from the seventh on."""
    return {name: PATH_COLOURS[n % len(PATH_COLOURS)] for n, name in enumerate(sorted(set(names)))}
