"""Reads InfluxDB line protocol as ``influx_inspect export -lponly`` writes it, and only what a scenario needs of it. Pure.

A parser of its own: the bench shares none with what it tests. A line that is none is counted, not fatal: an export also holds other
databases and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Value = float | str | bool

# Outside texts a backslash stands for itself, but before what it escapes.
_PART = r"(?:[^,= \\]|\\[,= ]|\\(?![,= ]))+"
_HEAD = re.compile(rf"((?:[^, \\]|\\[, ]|\\(?![, ]))+)((?:,{_PART}={_PART})*) ")
_TAG = re.compile(rf",({_PART})=({_PART})")
_FIELD = re.compile(
    rf'({_PART})=(?:"((?:[^"\\]|\\.)*)"|(-?[0-9]{{1,19}})i|(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{{1,3}})?)|([tT](?:rue|RUE)?|[fF](?:alse|ALSE)?))'
)
_TIME = re.compile(r" (-?[0-9]{1,19})\Z")


@dataclass(frozen=True, slots=True)
class Point:
    """One line. Whole numbers are floats too: nothing here needs more than 53 bits but times, which are not fields."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, Value]
    utc_ns: int


def point(line: str) -> Point | None:
    """The point in a line, None when it is none."""
    head = _HEAD.match(line)
    if head is None:
        return None
    fields: dict[str, Value] = {}
    place = head.end()
    while True:
        found = _FIELD.match(line, place)
        if found is None:
            return None
        name, text, whole, number, truth = found.groups()
        if text is not None:
            fields[_plain(name)] = re.sub(r"\\(.)", r"\1", text)
        elif truth is not None:
            fields[_plain(name)] = truth[0] in "tT"
        else:
            fields[_plain(name)] = float(whole or number)
        place = found.end()
        if line[place : place + 1] != ",":
            break
        place += 1
    time = _TIME.match(line, place)
    if time is None:
        return None
    tags = {_plain(name): _plain(value) for name, value in _TAG.findall(head[2])}
    return Point(_plain(head[1]), tags, fields, int(time[1]))


def points(lines: Iterable[str], measurements: set[str]) -> Iterator[Point]:
    """The points of some measurements, in the order of the file."""
    for line in lines:
        name = re.match(r"[a-z_]+", line)
        if name is not None and name[0] in measurements and (found := point(line.rstrip("\r\n"))) is not None:
            yield found


def _plain(text: str) -> str:
    return re.sub(r"\\([,= ])", r"\1", text)
