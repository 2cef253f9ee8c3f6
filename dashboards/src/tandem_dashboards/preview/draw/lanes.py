"""States over time: a lane for each series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tandem_dashboards.grafana.frames import TIME, Frame, Value
from tandem_dashboards.grafana.times import Range
from tandem_dashboards.preview.draw import svg
from tandem_dashboards.preview.fields import PALETTE, Config, config, sort_of

_RIGHT, _BOTTOM = 12, 22


def draw(panel: Mapping[str, Any], frames: Sequence[Frame], span: Range, width: float, height: float) -> str:
    """The lanes, coloured by the state."""
    lanes = [
        (config(panel, f.name, f.ref, n, sort_of(f.figures, "Value")), f)
        for n, f in enumerate(frames)
        if TIME in f.columns
    ]
    if not lanes:
        return ""
    left = min(240, 16 + 7 * max(len(its.title) for its, _ in lanes))
    tall = max(14.0, (height - _BOTTOM) / len(lanes))

    def x(ms: float) -> float:
        return left + (ms - span.from_ms) / (span.to_ms - span.from_ms) * (width - left - _RIGHT)

    parts = []
    seen: dict[str, str] = {}
    for n, (its, frame) in enumerate(lanes):
        y = n * tall
        parts.append(svg.words(left - 8, y + tall / 2 + 4, its.title, anchor="end", colour=svg.TEXT))
        for begin, end, value in _states(frame, span.to_ms):
            colour = _colour(its, value, seen)
            a, b = x(max(begin, span.from_ms)), x(min(end, span.to_ms))
            said = its.text(value)
            rect = svg.tag(
                "rect",
                svg.hint(f"{said}, from {svg.instant(begin)}"),
                x=a,
                width=max(b - a, 0.5),
                y=y + 2,
                height=tall - 4,
            )
            parts.append(svg.tag("g", rect, fill=colour, opacity=0.85))
            if panel["options"].get("showValue") != "never" and b - a > 7 * len(said) + 6:
                parts.append(svg.words(a + 4, y + tall / 2 + 4, said, colour="#111"))
    for at, words in svg.time_steps(span.from_ms, span.to_ms, int(width / 90)):
        parts.append(svg.words(x(at), len(lanes) * tall + 15, words, anchor="middle"))
    return svg.picture(width, len(lanes) * tall + _BOTTOM, "".join(parts))


def _states(frame: Frame, end_ms: int) -> list[tuple[float, float, Value]]:
    """Each state from its first point until the next point that says otherwise; a null ends it."""
    points = [(float(t or 0), v) for t, v in zip(frame.columns[TIME], frame.figures, strict=True)]
    found: list[tuple[float, float, Value]] = []
    for n, (when, value) in enumerate(points):
        until = points[n + 1][0] if n + 1 < len(points) else float(end_ms)
        if value is None:
            continue
        if found and found[-1][2] == value and found[-1][1] == when:
            found[-1] = (found[-1][0], until, value)
        else:
            found.append((when, until, value))
    return found


def _colour(its: Config, value: Value, seen: dict[str, str]) -> str:
    """The state's own; for a text without one (a cell), one each."""
    if its.mapped(value) or not isinstance(value, str):
        return its.colour(value)
    return seen.setdefault(value, PALETTE[len(seen) % len(PALETTE)])
