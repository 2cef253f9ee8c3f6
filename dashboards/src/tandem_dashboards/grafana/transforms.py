"""Transformations of answers, those that ``transform.py`` makes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tandem_dashboards.grafana.frames import TIME, Frame, Value


class TransformError(ValueError):
    """A transformation that is not known here."""


def transformed(frames: Sequence[Frame], steps: Sequence[Mapping[str, Any]]) -> list[Frame]:
    """``frames`` after every step of a panel's ``transformations``."""
    found = list(frames)
    for step in steps:
        if step.get("disabled"):
            continue
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
    include = options.get("include", {})
    names, pattern = set(include.get("names", ())), include.get("pattern")

    def kept(name: str) -> bool:
        return name in names or bool(pattern and re.search(pattern, name))

    return [Frame(f.name, {n: v for n, v in f.columns.items() if kept(n)}, f.ref, f.labels) for f in frames]


def _organised(frames: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    places, away = options.get("indexByName", {}), options.get("excludeByName", {})
    names = options.get("renameByName", {})
    made = []
    for frame in frames:
        order = sorted(frame.columns, key=lambda name: places.get(name, len(places)))
        columns = {names.get(name) or name: frame.columns[name] for name in order if not away.get(name)}
        made.append(Frame(frame.name, columns, frame.ref, frame.labels))
    return made


def _series_to_rows(frames: list[Frame], _: Mapping[str, Any]) -> list[Frame]:
    """seriesToRows: every point of every series one row: time, name, value."""
    rows = [
        (when, frame.name, value)
        for frame in frames
        for when, value in zip(frame.columns.get(TIME, []), frame.figures, strict=False)
    ]
    times, names, values = ([row[n] for row in rows] for n in range(3))
    return [Frame("rows", {TIME: times, "Metric": list(names), "Value": values})]


_STEPS = {
    "joinByField": _joined,
    "merge": _merged,
    "filterFieldsByName": _only,
    "organize": _organised,
    "seriesToRows": _series_to_rows,
}
