"""Small pieces of SVG and HTML."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from html import escape

GREY, FAINT, TEXT = "#8e8e96", "#2c3037", "#d0d0d6"


def tag(name: str, content: str = "", **attributes: object) -> str:
    """An element; ``_`` in a name is ``-``, and a trailing one goes (``class_``)."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value), quote=True)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{said}>{content}</{name}>"


def _short(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def picture(width: float, height: float, content: str) -> str:
    """An SVG of this size."""
    return tag("svg", content, width=int(width), height=int(height), viewBox=f"0 0 {int(width)} {int(height)}")


def words(x: float, y: float, text: str, *, anchor: str = "start", colour: str = GREY, size: int = 11) -> str:
    """A line of text."""
    return tag("text", escape(text), x=x, y=y, text_anchor=anchor, fill=colour, font_size=size)


def hint(text: str) -> str:
    """What is shown when the pointer rests."""
    return tag("title", escape(text))


def nice_steps(low: float, high: float, about: int) -> list[float]:
    """Round figures between ``low`` and ``high``, about so many."""
    if not low < high or about < 1:
        return [low]
    rough = (high - low) / about
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


_TIME_STEPS_S = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000)


def time_steps(from_ms: int, to_ms: int, about: int) -> list[tuple[int, str]]:
    """Round instants with their words, in UTC."""
    rough = (to_ms - from_ms) / 1000 / max(about, 1)
    step = next((s for s in _TIME_STEPS_S if s >= rough), _TIME_STEPS_S[-1]) * 1000
    form = "%H:%M:%S" if step < 60_000 else "%H:%M" if step < 86_400_000 else "%d %b"
    first = -(-from_ms // step) * step
    return [(at, datetime.fromtimestamp(at / 1000, UTC).strftime(form)) for at in range(first, to_ms + 1, step)]


def instant(ms: float) -> str:
    """A time in UTC, for a table."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def legend(items: list[tuple[str, str]]) -> str:
    """Colours and names below a chart."""
    return tag(
        "div",
        "".join(tag("span", tag("i", "", style=f"background:{colour}") + escape(name)) for colour, name in items),
        class_="legend",
    )
