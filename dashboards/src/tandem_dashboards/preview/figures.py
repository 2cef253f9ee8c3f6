"""Panels drawn as HTML: big figures, gauges, tables, and legends of charts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from tandem_dashboards.grafana.frames import TIME, Frame, Value
from tandem_dashboards.preview.fields import NOTHING, Config, config, sort_of

_MOST_ROWS = 60


def tag(name: str, content: str = "", **attributes: object) -> str:
    """An element; a trailing ``_`` of an attribute's name goes (``class_``)."""
    own = "".join(f' {key.rstrip("_")}="{escape(str(value), quote=True)}"' for key, value in attributes.items())
    return f"<{name}{own}>{content}</{name}>"


def instant(ms: float) -> str:
    """A time in UTC, for a table."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def reduced(values: Sequence[Value], how: str) -> Value:
    """One of many, by Grafana's name of the way: ``lastNotNull``, ``mean``, ``max``."""
    known = [value for value in values if value is not None]
    numbers = [float(value) for value in known if isinstance(value, int | float)]
    if how == "lastNotNull":
        return known[-1] if known else None
    if not numbers:
        return None
    return sum(numbers) / len(numbers) if how == "mean" else max(numbers)


def _newest(panel: Mapping[str, Any], frames: Sequence[Frame]) -> list[tuple[Config, Value]]:
    """A figure for each series, or for each column of a table."""
    wanted = (panel["options"].get("reduceOptions") or {}).get("fields") or ""
    found: list[tuple[Config, Value]] = []
    for frame in frames:
        for name, values in frame.columns.items():
            sort, called = sort_of(values, name), frame.name if name == "Value" else name
            if name == TIME or not (re.search(wanted.strip("/"), called) if wanted else sort != "string"):
                continue
            found.append((config(panel, called, frame.ref, len(found)), reduced(values, "lastNotNull")))
    return found


def stat(panel: Mapping[str, Any], frames: Sequence[Frame], width: float, height: float) -> str:
    """The figures side by side."""
    figures, options = _newest(panel, frames), panel["options"]
    solid, named = options.get("colorMode") == "background_solid", options.get("textMode") == "value_and_name"
    if not figures:
        nothing = panel["fieldConfig"]["defaults"].get("noValue") or NOTHING
        return tag("div", tag("b", escape(str(nothing))), class_="stat")
    longest = max(len(its.text(value)) for its, value in figures)
    size = max(13, min(40, int(min(height * 0.5, width / len(figures) / max(5, 0.6 * longest)))))
    boxes = ""
    for its, value in figures:
        colour = its.colour(value)
        style = f"background:{colour};color:#111" if solid else f"color:{colour}"
        name = tag("small", escape(its.title)) if named or len(figures) > 1 else ""
        boxes += tag("div", name + tag("b", escape(its.text(value)), style=f"font-size:{size}px"), style=style)
    return tag("div", boxes, class_="stat")


def gauge(panel: Mapping[str, Any], frames: Sequence[Frame]) -> str:
    """A lying bar for each."""
    figures = _newest(panel, frames)
    known = [float(value) for _, value in figures if isinstance(value, int | float)]
    rows = ""
    for its, value in figures:
        high = its.raw.get("max")
        bar = _bar(its, value, float(its.raw.get("min") or 0), max(known, default=1.0) if high is None else float(high))
        rows += tag("div", tag("span", escape(its.title)) + bar + tag("b", escape(its.text(value))))
    return tag("div", rows, class_="gauge")


def _bar(its: Config, value: Value, low: float, high: float) -> str:
    part = (float(value) - low) / (high - low) if isinstance(value, int | float) and high > low else 0.0
    return tag("u", tag("i", style=f"width:{max(0.0, min(1.0, part)) * 100:.1f}%;background:{its.colour(value)}"))


def table(panel: Mapping[str, Any], frames: Sequence[Frame]) -> str:
    """The first frame as a table; links go nowhere here and only say where they would."""
    if not frames:
        return ""
    frame = frames[0]
    columns = [
        (config(panel, name, frame.ref, n), values, sort_of(values, name))
        for n, (name, values) in enumerate(frame.columns.items())
    ]
    order = _order(panel, columns, frame.length)
    head = tag("tr", "".join(tag("th", escape(its.title), style=_style(its, sort)) for its, _, sort in columns))
    body = "".join(
        tag("tr", "".join(_cell(its, values[row], sort) for its, values, sort in columns)) for row in order[:_MOST_ROWS]
    )
    more = f"<p>… {len(order) - _MOST_ROWS} more rows</p>" if len(order) > _MOST_ROWS else ""
    return tag("div", tag("table", head + body) + more, class_="table")


def _order(panel: Mapping[str, Any], columns: list[tuple[Config, list[Value], str]], length: int) -> list[int]:
    wanted = (panel["options"].get("sortBy") or [{}])[0]
    for its, values, _ in columns:
        if its.title == wanted.get("displayName"):
            known = [n for n in range(length) if values[n] is not None]
            known.sort(key=lambda n: (isinstance(values[n], str), values[n]), reverse=bool(wanted.get("desc")))
            return known + [n for n in range(length) if values[n] is None]
    return list(range(length))


def _cell(its: Config, value: Value, sort: str) -> str:
    text = escape(instant(float(value)) if sort == "time" and isinstance(value, int | float) else its.text(value))
    kind = (its.custom.get("cellOptions") or {}).get("type", "auto")
    style = ""
    if value is not None and kind == "color-background":
        style = f"background:{its.colour(value)};color:#111"
    elif value is not None and kind == "color-text":
        style = f"color:{its.colour(value)}"
    if kind == "gauge" and isinstance(value, int | float):
        text = _bar(its, value, 0.0, float(its.raw.get("max") or 1)) + text
    links = its.raw.get("links") or ()
    if links:
        text = tag("a", text, title=f"{links[0]['title']}: {links[0]['url']}")
    if sort == "number":
        style += ";text-align:right"
    return tag("td", text, style=style.strip(";"))


def _style(its: Config, sort: str) -> str:
    wide = [f"width:{int(its.custom['width'])}px"] if its.custom.get("width") else []
    return ";".join([*wide, *(["text-align:right"] if sort == "number" else [])])


def legend(of: Sequence[tuple[Config, Sequence[Value]]], sums: Sequence[str] = ()) -> str:
    """Colours and names below a chart; with ``sums``, as a table of these."""
    names = [tag("i", style=f"background:{its.colour(None)}") + escape(its.title) for its, _ in of]
    if not sums:
        return tag("div", "".join(tag("span", name) for name in names), class_="legend")
    rows = tag("tr", "".join(tag("th", escape(name)) for name in ("", *sums)))
    for name, (its, values) in zip(names, of, strict=True):
        cells = "".join(tag("td", escape(its.text(reduced(values, how)))) for how in sums)
        rows += tag("tr", tag("td", name) + cells)
    return tag("table", rows, class_="legend")
