"""Big figures and gauges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tandem_dashboards.grafana.frames import TIME, Frame, Value
from tandem_dashboards.preview.draw import svg
from tandem_dashboards.preview.fields import NOTHING, Config, config, sort_of

Figure = tuple[Config, Value]


def reduced(values: Sequence[Value], how: str) -> Value:
    """One of many, by Grafana's name of the way."""
    known = [value for value in values if value is not None]
    numbers = [float(value) for value in known if isinstance(value, int | float)]
    if how == "count":
        return len(values)
    if how == "last":
        return values[-1] if values else None
    if how == "lastNotNull":
        return known[-1] if known else None
    if not numbers:
        return None
    if how == "mean":
        return sum(numbers) / len(numbers)
    if how == "sum":
        return sum(numbers)
    return min(numbers) if how == "min" else max(numbers)


def figures_of(panel: Mapping[str, Any], frames: Sequence[Frame]) -> list[Figure]:
    """A figure for each series, or for each column of a table; of every row where all values are wanted."""
    options = panel["options"].get("reduceOptions") or {}
    how, each = (options.get("calcs") or ["lastNotNull"])[0], options.get("values")
    wanted = options.get("fields") or ""
    found: list[Figure] = []
    for frame in frames:
        for name, values in frame.columns.items():
            sort = sort_of(values, name)
            called = frame.name if name == "Value" else name
            if name == TIME or (not wanted and sort == "string"):
                continue
            if wanted and not re.search(wanted.strip("/"), called):
                continue
            its = config(panel, called, frame.ref, len(found), sort)
            found += [(its, value) for value in values] if each else [(its, reduced(values, how))]
    return found


def stat(panel: Mapping[str, Any], frames: Sequence[Frame], width: float, height: float) -> str:
    """The figures side by side."""
    figures = figures_of(panel, frames)
    options = panel["options"]
    solid, named = options.get("colorMode") == "background_solid", options.get("textMode") == "value_and_name"
    if not figures:
        said = (panel["fieldConfig"]["defaults"]).get("noValue") or NOTHING
        return svg.tag("div", svg.tag("b", escape(str(said))), class_="stat")
    size = max(13, min(40, int(min(height * 0.5, width / len(figures) / 5))))
    boxes = ""
    for its, value in figures:
        colour = its.colour(value)
        style = f"background:{colour};color:#111" if solid else f"color:{colour}"
        name = svg.tag("small", escape(its.title)) if named or len(figures) > 1 else ""
        boxes += svg.tag("div", name + svg.tag("b", escape(its.text(value)), style=f"font-size:{size}px"), style=style)
    return svg.tag("div", boxes, class_="stat")


def gauge(panel: Mapping[str, Any], frames: Sequence[Frame]) -> str:
    """A lying bar for each."""
    figures = figures_of(panel, frames)
    known = [float(value) for _, value in figures if isinstance(value, int | float)]
    rows = ""
    for its, value in figures:
        low, high = float(its.raw.get("min") or 0), its.raw.get("max")
        top = float(high) if high is not None else max(known, default=1.0)
        part = (float(value) - low) / (top - low) if isinstance(value, int | float) and top > low else 0.0
        bar = svg.tag("i", "", style=f"width:{max(0.0, min(1.0, part)) * 100:.1f}%;background:{its.colour(value)}")
        rows += svg.tag(
            "div", svg.tag("span", escape(its.title)) + svg.tag("u", bar) + svg.tag("b", escape(its.text(value)))
        )
    return svg.tag("div", rows, class_="gauge")
