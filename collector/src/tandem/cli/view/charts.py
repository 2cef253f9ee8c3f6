"""Charts of block characters: a history over several rows, a bar. Pure; the rich text they return carries the colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PARTS = " ▏▎▍▌▋▊▉█"


def history(
    values: Sequence[Any],
    width: int,
    height: int,
    low: float,
    high: float,
    colour: Callable[[Any], str],
    gap: str = "·",
) -> list[Text]:
    """``height`` rows of the last ``width`` values, newest at the right. What is absent is ``gap`` on the lowest row, so that a
    silent modem does not look like a weak one; the smallest value still shows."""
    shown = list(values[-width:]) if width > 0 else []
    rows = [Text(" " * (width - len(shown))) for _ in range(height)]
    for value in shown:
        if isinstance(value, bool) or not isinstance(value, int | float):
            for number, row in enumerate(rows):
                row.append(gap if number == height - 1 else " ", "bright_black")
            continue
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        filled = max(1, round(share * height * 8))
        for number, row in enumerate(rows):
            eighths = min(8, max(0, filled - (height - 1 - number) * 8))
            row.append(_EIGHTHS[eighths], colour(value))
    return rows


def bar(value: Any, most: float, width: int, style: str) -> Text:  # noqa: ANN401 a JSON value
    """A bar of at most ``width`` columns on a thin rail; ``most`` is a full one."""
    share = 0.0
    if isinstance(value, int | float) and not isinstance(value, bool) and most > 0:
        share = min(1.0, max(0.0, value / most))
    eighths = round(share * width * 8)
    text = Text("█" * (eighths // 8), style)
    if eighths % 8:
        text.append(_PARTS[eighths % 8], style)
    text.append("·" * (width - len(text)), "bright_black")
    return text


def nice_ceiling(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 5, 7, 10, 15, … from ``value``: a scale that does not jump with every sample."""
    step = 1.0
    while True:
        for factor in (1, 1.5, 2, 3, 5, 7):
            if step * factor >= value:
                return step * factor
        step *= 10
