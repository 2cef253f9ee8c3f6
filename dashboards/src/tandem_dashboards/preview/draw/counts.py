"""Bar charts, histograms, heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tandem_dashboards.grafana.frames import TIME, Frame
from tandem_dashboards.grafana.times import Range
from tandem_dashboards.preview.draw import svg
from tandem_dashboards.preview.fields import config, sort_of

_LEFT, _BOTTOM = 60, 26
_MOST_BUCKETS = 200


def bars(panel: Mapping[str, Any], frames: Sequence[Frame], width: float, height: float) -> str:
    """A group of bars for each row."""
    if not frames:
        return ""
    frame, options = frames[0], panel["options"]
    across = options.get("xField") or next(iter(frame.columns))
    labels = frame.columns.get(across, [])
    drawn = [
        (config(panel, name, frame.ref, n, "number"), [float(v) if isinstance(v, int | float) else 0.0 for v in values])
        for n, (name, values) in enumerate(frame.columns.items())
        if name not in (across, TIME) and sort_of(values, name) == "number"
    ]
    names = config(panel, across, frame.ref, 0, "string")
    stacked = options.get("stacking") in ("normal", "percent")
    if options.get("stacking") == "percent":
        sums = [sum(values[n] for _, values in drawn) or 1.0 for n in range(len(labels))]
        drawn = [(its, [100 * v / sums[n] for n, v in enumerate(values)]) for its, values in drawn]
    return _bars(
        [names.text(label) for label in labels],
        [(its.title, its.colour(None), values) for its, values in drawn],
        (lambda v: f"{v:.0f} %") if options.get("stacking") == "percent" else (drawn[0][0].text if drawn else str),
        (width, height),
        stacked=stacked,
        lying=options.get("orientation") == "horizontal",
    )


def histogram(panel: Mapping[str, Any], frames: Sequence[Frame], width: float, height: float) -> str:
    """How often figures fall into each bucket."""
    drawn = []
    for n, frame in enumerate(frames):
        its = config(panel, frame.name, frame.ref, n)
        drawn.append((its, [float(v) for v in frame.figures if isinstance(v, int | float)]))
    figures = [value for _, values in drawn for value in values]
    if not figures:
        return ""
    spread = max(figures) - min(figures)
    size = max(float(panel["options"].get("bucketSize") or spread / 30 or 1.0), spread / _MOST_BUCKETS)
    first, last = int(min(figures) // size), int(max(figures) // size)
    counted = []
    for its, values in drawn:
        counts = [0.0] * (last - first + 1)
        for value in values:
            counts[int(value // size) - first] += 1
        counted.append((its.title, its.colour(None), counts))
    labels = [drawn[0][0].text(n * size) for n in range(first, last + 1)]
    return _bars(labels, counted, lambda v: f"{v:.0f}", (width, height))


def _bars(
    labels: list[str],
    drawn: list[tuple[str, str, list[float]]],
    said: Any,  # noqa: ANN401 a function that writes a figure
    size: tuple[float, float],
    *,
    stacked: bool = False,
    lying: bool = False,
) -> str:
    below = -(-sum(len(name) * 7 + 30 for name, _, _ in drawn) // int(size[0])) if len(drawn) > 1 else 0
    width, height = size[0], size[1] - below * 18 - (4 if below else 0)
    rows = len(labels) or 1
    sums = [sum(values[n] for _, _, values in drawn) for n in range(len(labels))] if stacked else []
    top = max([value for _, _, values in drawn for value in values] + sums + [1e-9])
    left = min(200, 16 + 7 * max((len(label) for label in labels), default=0)) if lying else _LEFT
    long, wide = (width - left - 60, height) if lying else (height - _BOTTOM - 8, width - left - 8)
    slot = wide / rows
    each = slot * 0.8 / (1 if stacked else max(len(drawn), 1))
    parts = []
    for value in [] if lying else svg.nice_steps(0, top, max(2, int(long / 34))):
        y = 8 + long - value / top * long
        parts.append(svg.tag("line", x1=left, x2=width, y1=y, y2=y, stroke=svg.FAINT))
        parts.append(svg.words(left - 6, y + 4, said(value), anchor="end"))
    every = 1 if lying else max(1, int(7 * max((len(label) for label in labels), default=1) / max(slot, 1)) + 1)
    for n, label in enumerate(labels):
        begin, ground = n * slot + slot * 0.1, 0.0
        for k, (name, colour, values) in enumerate(drawn):
            tall = values[n] / top * long
            across = begin if stacked else begin + k * each
            place = (
                {"x": left + ground, "width": max(tall, 0), "y": across, "height": each}
                if lying
                else {"x": left + across, "width": each, "y": 8 + long - ground - tall, "height": max(tall, 0)}
            )
            parts.append(svg.tag("rect", svg.hint(f"{label}, {name}: {said(values[n])}"), fill=colour, **place))
            ground += tall if stacked else 0.0
        if lying:
            parts.append(svg.words(left - 8, n * slot + slot / 2 + 4, label, anchor="end", colour=svg.TEXT))
        elif n % every == 0:
            parts.append(svg.words(left + n * slot + slot / 2, height - 8, label, anchor="middle"))
    return svg.picture(width, height, "".join(parts)) + (
        svg.legend([(colour, name) for name, colour, _ in drawn]) if len(drawn) > 1 else ""
    )


_SHADES = ("#2c1e4a", "#3b528b", "#21918c", "#5ec962", "#fde725")


def heat(panel: Mapping[str, Any], frames: Sequence[Frame], span: Range, width: float, height: float) -> str:
    """Counts by colour: rows that the database counted, or figures counted here."""
    counted = not panel["options"].get("calculate")
    cells, labels, columns = _given(frames) if counted else _counted(panel, frames, span)
    if not cells:
        return ""
    most = max(cells.values())
    wide, tall = (width - _LEFT - 70 - 8) / columns, (height - _BOTTOM) / len(labels)
    left = _LEFT + 70
    parts = []
    for (column, row), value in cells.items():
        shade = _SHADES[min(len(_SHADES) - 1, int((value / most) ** 0.5 * len(_SHADES)))]
        y = (len(labels) - 1 - row) * tall
        about = svg.hint(f"{labels[row]}: {value:g}")
        parts.append(
            svg.tag("rect", about, x=left + column * wide, width=wide, y=y, height=max(tall - 1, 1), fill=shade)
        )
    for row, label in enumerate(labels):
        if row % max(1, int(16 / max(tall, 1))) == 0:
            parts.append(svg.words(left - 6, (len(labels) - 1 - row) * tall + tall / 2 + 4, label, anchor="end"))
    for at, words in svg.time_steps(span.from_ms, span.to_ms, int(width / 110)):
        x = left + (at - span.from_ms) / (span.to_ms - span.from_ms) * (width - left - 8)
        parts.append(svg.words(x, height - 8, words, anchor="middle"))
    return svg.picture(width, height, "".join(parts))


Cells = tuple[dict[tuple[int, int], float], list[str], int]


def _given(frames: Sequence[Frame]) -> Cells:
    times = sorted({t for frame in frames for t in frame.columns.get(TIME, []) if isinstance(t, int | float)})
    place = {t: n for n, t in enumerate(times)}
    cells = {}
    for row, frame in enumerate(frames):
        for when, value in zip(frame.columns.get(TIME, []), frame.figures, strict=False):
            if isinstance(value, int | float) and value > 0 and isinstance(when, int | float):
                cells[place[when], row] = float(value)
    return cells, [frame.name for frame in frames], len(times) or 1


def _counted(panel: Mapping[str, Any], frames: Sequence[Frame], span: Range) -> Cells:
    points = [
        (float(t), float(v))
        for frame in frames
        for t, v in zip(frame.columns.get(TIME, []), frame.figures, strict=False)
        if isinstance(v, int | float) and isinstance(t, int | float)
    ]
    if not points:
        return {}, [], 1
    low, high = min(v for _, v in points), max(v for _, v in points)
    across, up = 60, 20
    size = (high - low) / up or 1.0
    cells: dict[tuple[int, int], float] = {}
    for when, value in points:
        column = min(across - 1, int((when - span.from_ms) / (span.to_ms - span.from_ms) * across))
        row = min(up - 1, int((value - low) / size))
        cells[column, row] = cells.get((column, row), 0) + 1
    unit = (panel["options"].get("yAxis") or {}).get("unit") or "none"
    its = config({"fieldConfig": {"defaults": {"unit": unit}}}, "", "", 0)
    return cells, [its.text(round(low + n * size, 3)) for n in range(up)], across
