"""The grades' colours as rich writes them: named ANSI colours, so that they follow the terminal's own theme, with a mark beside them
for who sees no colours."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from tandem.schema.grades import COLOURS, Tone, path_colours, tone_of

QUIET = COLOURS["quiet"].terminal
LEGEND = f"{COLOURS['fair'].mark} fair {COLOURS['poor'].mark} poor"
ALARM = f"bold reverse {COLOURS['poor'].terminal}"
"""Of what must not be overlooked: reversed, so that it stands out without colours too."""


def style(tone: Tone) -> str:
    """A tone's colour."""
    return COLOURS[tone].terminal


def toned(words: str, tone: Tone, *, bold: bool = False) -> Text:
    """``words`` in the tone's colour, with its mark where it is no good grade."""
    mark = COLOURS[tone].mark if tone in ("fair", "poor") else ""
    return Text(words + mark, f"bold {style(tone)}" if bold else style(tone))


def of(measurement: str, field: str, value: Any) -> str:  # noqa: ANN401 a JSON value
    """The colour of a value."""
    return style(tone_of(measurement, field, value))


def of_paths(names: list[str]) -> dict[str, str]:
    """A colour for each path."""
    return {name: colour.terminal for name, colour in path_colours(names).items()}
