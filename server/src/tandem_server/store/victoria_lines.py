"""What VictoriaMetrics can hold of line protocol, and in which form. Pure: lines in, lines out.

It holds numbers at milliseconds: a field becomes the series ``MEASUREMENT_FIELD``, its tags labels, true and false 1 and 0. A text would
become 0. So texts either go into the labels of a series of their own, ``MEASUREMENT_texts`` with the value 1, or are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tandem.schema.line_protocol import Point, parse

Texts = Literal["labels", "dropped"]
_LABEL_CHARACTERS = 4096


@dataclass(frozen=True, slots=True)
class Stored:
    """One line as VictoriaMetrics takes it. ``lines``: one, or two with its texts; ``name`` and ``labels`` of the series of one of
    its numbers."""

    lines: tuple[str, ...]
    name: str
    labels: dict[str, str]
    utc_ms: int


def stored(line: str, database: str, texts: Texts) -> Stored | None:
    """None for a line without a number or a time, which it cannot hold."""
    point = parse(line)
    numbers = {name: value for name, value in point.fields.items() if not isinstance(value, str)}
    if not numbers or point.utc_ns is None:
        return None
    utc_ms = point.utc_ns // 1_000_000
    lines = [_line(point.measurement, point.tags, numbers, utc_ms)]
    told = {name: _label(value) for name, value in point.fields.items() if isinstance(value, str)}
    told = {name: value for name, value in told.items() if value and name not in point.tags}
    if told and texts == "labels":
        lines.append(_line(point.measurement, {**point.tags, **told}, {"texts": 1}, utc_ms))
    name = f"{point.measurement}_{next(iter(numbers))}"
    return Stored(tuple(lines), name, {**point.tags, "db": database}, utc_ms)


def series_and_ms(point: Point) -> tuple[object, ...]:
    """What tells records apart there: one series has one value a millisecond."""
    return point.measurement, frozenset(point.tags.items()), (point.utc_ns or 0) // 1_000_000


def _line(measurement: str, tags: dict[str, str], fields: dict[str, int | float | bool], utc_ms: int) -> str:
    head = [measurement, *(f"{_escaped(name)}={_escaped(value)}" for name, value in sorted(tags.items()))]
    body = ",".join(f"{name}={_number(value)}" for name, value in fields.items())
    return f"{','.join(head)} {body} {utc_ms}"


def _number(value: int | float | bool) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value)


def _label(text: object) -> str:
    """As a label: without line breaks, without the backslash at the end that would escape what follows, of a bounded length."""
    return " ".join(str(text).split())[:_LABEL_CHARACTERS].rstrip("\\ ")


def _escaped(text: str) -> str:
    for special in ("\\", ",", "=", " "):
        text = text.replace(special, "\\" + special)
    return text
