"""Maps without a base map: places on a plain ground, true to scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tandem_dashboards.grafana.frames import Frame, Value
from tandem_dashboards.preview.draw import svg
from tandem_dashboards.preview.fields import config

_LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
_DEGREE_M = 111_320.0


def middle_of(geohash: str) -> tuple[float, float] | None:
    """Latitude and longitude of an area's middle; None for what is no geohash."""
    latitude, longitude, even = [-90.0, 90.0], [-180.0, 180.0], True
    for letter in geohash:
        if letter not in _LETTERS:
            return None
        for bit in (16, 8, 4, 2, 1):
            pair = longitude if even else latitude
            pair[0 if _LETTERS.index(letter) & bit else 1] = sum(pair) / 2
            even = not even
    return (sum(latitude) / 2, sum(longitude) / 2) if geohash else None


def draw(panel: Mapping[str, Any], frames: Sequence[Frame], width: float, height: float) -> str:
    """Every layer's places."""
    layers = [(layer, places) for layer in panel["options"].get("layers", []) for places in [_places(layer, frames)]]
    known = [place for _, (places, _, _) in layers for place in places]
    if not known:
        return ""
    lat, lon = [p[0] for p in known], [p[1] for p in known]
    narrow = math.cos(math.radians(sum(lat) / len(lat)))
    tall, wide = max(max(lat) - min(lat), 1e-4), max((max(lon) - min(lon)) * narrow, 1e-4)
    scale = min((width - 40) / wide, (height - 40) / tall)

    def at(place: tuple[float, float]) -> tuple[float, float]:
        x = width / 2 + (place[1] - (max(lon) + min(lon)) / 2) * narrow * scale
        return x, height / 2 - (place[0] - (max(lat) + min(lat)) / 2) * scale

    parts = [svg.tag("rect", x=0, y=0, width=width, height=height, fill="#181b1f")]
    for layer, (places, frame, rows) in layers:
        parts.append(_layer(panel, layer, [at(place) for place in places], frame, rows))
    metres = 10 ** math.floor(math.log10(width / 3 / scale * _DEGREE_M))
    parts.append(svg.tag("rect", x=12, y=height - 14, width=metres / _DEGREE_M * scale, height=3, fill=svg.GREY))
    parts.append(svg.words(12, height - 20, f"{metres / 1000:g} km" if metres >= 1000 else f"{metres:g} m"))
    return svg.picture(width, height, "".join(parts))


def _layer(
    panel: Mapping[str, Any],
    layer: Mapping[str, Any],
    points: list[tuple[float, float]],
    frame: Frame | None,
    rows: list[int],
) -> str:
    style = (layer.get("config") or {}).get("style") or {}
    field = (style.get("color") or {}).get("field")
    plain = (style.get("color") or {}).get("fixed", "#5794F2")
    its = config(panel, field, frame.ref, 0) if field and frame else None
    values: list[Value] = frame.columns.get(field, []) if frame and field else []
    colours = [its.colour(values[row]) if its and row < len(values) else plain for row in rows]
    parts = []
    if layer["type"] == "route":
        for (a, b), colour in zip(pairwise(points), colours[1:], strict=False):
            parts.append(svg.tag("line", x1=a[0], y1=a[1], x2=b[0], y2=b[1], stroke=colour, stroke_width=3))
        return "".join(parts)
    text = (style.get("text") or {}).get("field")
    names = frame.columns.get(text, []) if frame and text else []
    radius = float((style.get("size") or {}).get("fixed", 5))
    for (x, y), colour, row in zip(points, colours, rows, strict=True):
        about = ", ".join(f"{name}: {column[row]}" for name, column in frame.columns.items()) if frame else ""
        parts.append(svg.tag("circle", svg.hint(about), cx=x, cy=y, r=radius, fill=colour, opacity=0.8))
        if names:
            parts.append(svg.words(x, y - radius - 4, str(names[row]), anchor="middle", colour=svg.TEXT))
    return "".join(parts)


def _places(
    layer: Mapping[str, Any], frames: Sequence[Frame]
) -> tuple[list[tuple[float, float]], Frame | None, list[int]]:
    """The layer's places, the frame that they are from, and the row of each."""
    location, wanted = layer.get("location") or {}, (layer.get("filterData") or {}).get("options")
    for frame in frames:
        if wanted and frame.ref != wanted:
            continue
        found: list[tuple[float, float]] = []
        rows: list[int] = []
        for row in range(frame.length):
            place = _place(location, frame, row)
            if place:
                found.append(place)
                rows.append(row)
        if found:
            return found, frame, rows
    return [], None, []


def _place(location: Mapping[str, Any], frame: Frame, row: int) -> tuple[float, float] | None:
    if location.get("mode") == "geohash":
        value = frame.columns.get(location["geohash"], [None] * frame.length)[row]
        return middle_of(value) if isinstance(value, str) else None
    both = [frame.columns.get(location.get(name, ""), [None] * frame.length)[row] for name in ("latitude", "longitude")]
    latitude, longitude = both
    if isinstance(latitude, int | float) and isinstance(longitude, int | float):
        return float(latitude), float(longitude)
    return None
