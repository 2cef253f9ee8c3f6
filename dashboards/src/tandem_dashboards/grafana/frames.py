"""Answers of InfluxDB into Grafana's frames (one for each series and column, or one table), and transformations of these: those that
panels here use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Value = int | float | str | bool | None
TIME = "Time"
_ALIAS = re.compile(r"\$([@\w-]+)")


@dataclass
class Frame:
    """Columns of one length. ``columns[0]`` is ``Time`` (ms since 1970) where there is a time. ``ref``: the query's letter."""

    name: str
    columns: dict[str, list[Value]]
    ref: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Rows."""
        return len(next(iter(self.columns.values()), []))

    @property
    def figures(self) -> list[Value]:
        """Of a series: its values."""
        return next((values for name, values in self.columns.items() if name != TIME), [])


def rows_of(series: Sequence[dict[str, Any]]) -> int:
    """How many rows with anything in them an answer has: a window that was filled with null is none."""
    return sum(
        any(value is not None for name, value in zip(one["columns"], row, strict=True) if name != "time")
        for one in series
        for row in one.get("values", ())
    )


def as_table(series: Sequence[dict[str, Any]], ref: str = "") -> list[Frame]:
    """One frame: time, tags, columns."""
    if not series:
        return []
    first = series[0]
    columns: dict[str, list[Value]] = {}
    for n, name in enumerate(first["columns"]):
        columns[TIME if name == "time" else name] = [
            row[n] if n < len(row) else None for one in series for row in one.get("values", ())
        ]
        if n == 0:
            for tag in first.get("tags", {}):
                columns[tag] = [one.get("tags", {}).get(tag, "") for one in series for _ in one.get("values", ())]
    return [Frame(first.get("name", ""), columns, ref)]


def as_series(series: Sequence[dict[str, Any]], alias: str = "", ref: str = "") -> list[Frame]:
    """A frame for each group and column, named by ``alias``."""
    frames = []
    for one in series:
        names, values = one["columns"], one.get("values", ())
        if "time" not in names:
            # SHOW TAG VALUES has key and value; other lists one column.
            shown = [row[min(1, len(row) - 1)] for row in values if row]
            frames.append(Frame(one.get("name", ""), {"Value": shown}, ref))
            continue
        tags = one.get("tags", {})
        for n, column in enumerate(names):
            if column != "time":
                columns = {TIME: [row[0] for row in values], "Value": [row[n] for row in values]}
                frames.append(Frame(named(alias, one.get("name", ""), column, tags), columns, ref, dict(tags)))
    return frames


def named(alias: str, measurement: str, column: str, tags: dict[str, str]) -> str:
    """What a series is called."""
    if not alias:
        kept = ", ".join(f"{tag}: {value}" for tag, value in tags.items())
        return f"{measurement}.{column}" + (f" {{ {kept} }}" if kept else "")

    def put(found: re.Match[str]) -> str:
        known = {"m": measurement, "col": column, **{f"tag_{tag}": value for tag, value in tags.items()}}
        return known.get(found[1], found[0])

    return _ALIAS.sub(put, alias)


def listed(series: Sequence[dict[str, Any]]) -> list[str]:
    """What a variable lists: the texts of every frame, else its figures; each once, in their order."""
    found: dict[str, None] = {}
    for frame in as_series(series):
        for value in frame.figures:
            if value is not None:
                found[_text(value)] = None
    return list(found)


def _text(value: Value) -> str:
    """As JavaScript writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


class TransformError(ValueError):
    """A transformation that is not known here."""


def transformed(frames: Sequence[Frame], steps: Sequence[Mapping[str, Any]]) -> list[Frame]:
    """``frames`` after every step of a panel's ``transformations``."""
    found = list(frames)
    for step in steps:
        kind, options = step["id"], step.get("options", {})
        if kind not in _STEPS:
            raise TransformError(f"the transformation {kind!r} is not known to the preview; known: {', '.join(_STEPS)}")
        found = _STEPS[kind](found, options)
    return found


def _joined(frames: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    """joinByField, outer: rows that agree in one column. Columns of one name get numbers."""
    by = options["byField"]
    having = [frame for frame in frames if by in frame.columns]
    if not having:
        return []
    keys = list(dict.fromkeys(key for frame in having for key in frame.columns[by]))
    names = [name for frame in having for name in frame.columns if name != by]
    columns: dict[str, list[Value]] = {by: keys}
    seen: dict[str, int] = {}
    for frame in having:
        place = {key: row for row, key in enumerate(frame.columns[by])}
        for name, values in frame.columns.items():
            if name != by:
                seen[name] = seen.get(name, 0) + 1
                called = name if names.count(name) == 1 else f"{name} {seen[name]}"
                columns[called] = [values[place[key]] if key in place else None for key in keys]
    return [Frame("joined", columns)]


def _merged(frames: list[Frame], _: Mapping[str, Any]) -> list[Frame]:
    """merge: rows that agree in every column that all frames share become one."""
    if not frames:
        return []
    shared = [name for name in frames[0].columns if all(name in frame.columns for frame in frames)]
    names = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    rows: dict[tuple[Value, ...], dict[str, Value]] = {}
    for frame in frames:
        for n in range(frame.length):
            row = {name: values[n] for name, values in frame.columns.items()}
            rows.setdefault(tuple(row[name] for name in shared), {}).update(row)
    return [Frame("merged", {name: [row.get(name) for row in rows.values()] for name in names})]


def _only(frames: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    kept = options["include"]["names"]
    return [replace(f, columns={name: f.columns[name] for name in f.columns if name in kept}) for f in frames]


def _organised(frames: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    """Columns in their order, which is all that boards here ask."""
    places = options["indexByName"]
    order = [sorted(frame.columns, key=lambda name: places.get(name, len(places))) for frame in frames]
    return [replace(f, columns={n: f.columns[n] for n in names}) for f, names in zip(frames, order, strict=True)]


_STEPS = {"joinByField": _joined, "merge": _merged, "filterFieldsByName": _only, "organize": _organised}
