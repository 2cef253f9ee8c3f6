"""Tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tandem_dashboards.grafana.frames import Frame, Value
from tandem_dashboards.preview.draw import svg
from tandem_dashboards.preview.fields import Config, config, sort_of

_MOST = 60


def draw(panel: Mapping[str, Any], frames: Sequence[Frame]) -> str:
    """The first frame as a table; links go nowhere here and only say where they would."""
    if not frames:
        return ""
    frame = frames[0]
    columns = [
        (config(panel, name, frame.ref, n, sort_of(values, name)), values, sort_of(values, name))
        for n, (name, values) in enumerate(frame.columns.items())
    ]
    columns = [one for one in columns if not one[0].custom.get("hidden")]
    order = _order(panel, columns, frame.length)
    head = svg.tag("tr", "".join(svg.tag("th", escape(its.title), **_style(its, sort)) for its, _, sort in columns))
    body = "".join(
        svg.tag("tr", "".join(_cell(its, values[row], sort) for its, values, sort in columns)) for row in order[:_MOST]
    )
    more = f"<p>… {len(order) - _MOST} more rows</p>" if len(order) > _MOST else ""
    return svg.tag("div", svg.tag("table", head + body) + more, class_="table")


def _order(panel: Mapping[str, Any], columns: list[tuple[Config, list[Value], str]], length: int) -> list[int]:
    wanted = (panel["options"].get("sortBy") or [{}])[0]
    for its, values, _ in columns:
        if its.title == wanted.get("displayName"):
            known = [n for n in range(length) if values[n] is not None]
            known.sort(key=lambda n: (isinstance(values[n], str), values[n]), reverse=bool(wanted.get("desc")))
            return known + [n for n in range(length) if values[n] is None]
    return list(range(length))


def _cell(its: Config, value: Value, sort: str) -> str:
    said = svg.instant(float(value)) if sort == "time" and isinstance(value, int | float) else its.text(value)
    kind = (its.custom.get("cellOptions") or {}).get("type", "auto")
    style = ""
    if value is not None and kind == "color-background":
        style = f"background:{its.colour(value)};color:#111"
    elif value is not None and kind == "color-text":
        style = f"color:{its.colour(value)}"
    text = escape(said)
    if kind == "gauge" and isinstance(value, int | float):
        high = float(its.raw.get("max") or 1)
        part = max(0.0, min(1.0, float(value) / high))
        bar = svg.tag("i", "", style=f"width:{part * 100:.0f}%;background:{its.colour(value)}")
        text = svg.tag("u", bar) + text
    links = its.raw.get("links") or ()
    if links:
        text = svg.tag("a", text, title=f"{links[0]['title']}: {links[0]['url']}")
    if sort == "number":
        style += ";text-align:right"
    return svg.tag("td", text, style=style.strip(";"))


def _style(its: Config, sort: str) -> dict[str, object]:
    wide = its.custom.get("width")
    said = [f"width:{int(wide)}px"] if wide else []
    return {"style": ";".join([*said, "text-align:right"])} if sort == "number" else {"style": ";".join(said)}
