"""InfluxDB line protocol (version 1): written by the probe, read back by the gateway.

Types follow the table of metrics, not the Python value: a float field is always written as a float, so that a whole number
never makes a field-type conflict in the database.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tandem.schema.metrics import Field
from tandem.schema.record import SPECS, Record, RecordError, Value

_INT = re.compile(r"-?[0-9]{1,19}i\Z")
_FLOAT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_TIME = re.compile(r"-?[0-9]{1,19}\Z")
_TAG_CHARACTERS = 256
_UNFIT = re.compile(r'[\\"\x00-\x1f\x7f-\x9f\u2028\u2029]')
"""What InfluxDB's readers of a line understand in different ways (its first, which looks for the line's end, takes a blank behind two
backslashes for the end of the tags, and a quote behind it for the beginning of a text), or what a terminal acts upon."""
_NAMED = {"\\": "a backslash", '"': "a double quote", "\n": "a line break", "\r": "a line break"}
_PLAIN_FIELD = re.compile(
    r'([^,= ]+)=(?:"([^"]*)"|(-?[0-9]{1,19})i|(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)|(true|false))(,| |\Z)'
).match
"""One field of a line without backslashes: name, then text, int, float or truth value, then what follows."""


@dataclass(frozen=True, slots=True)
class Point:
    """One parsed line. ``utc_ns`` is None when the line has no time."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, Value]
    utc_ns: int | None


def tag_fault(text: str) -> str | None:
    """Why ``text`` can be no tag's value, one line; None: it can."""
    if found := _UNFIT.search(text):
        return f"{text[:80]!r} holds {_NAMED.get(found[0], 'a control character')}, which no tag may"
    return f"{text[:80]!r}… is longer than {_TAG_CHARACTERS}, as no tag may be" if len(text) > _TAG_CHARACTERS else None


@lru_cache(maxsize=4096)
def _escape(text: str, specials: str) -> str:
    # Cached: names are few, and values of tags (boot, run, path) are the same in thousands of lines.
    if (fault := tag_fault(text)) is not None:
        raise RecordError(fault)
    for char in specials:
        text = text.replace(char, "\\" + char)
    return text


def _format(kind: str, value: Value) -> str:
    if kind == "float":
        return repr(float(value))
    if kind == "int":
        return f"{int(value)}i"
    if kind == "bool":
        return "true" if value else "false"
    text = str(value).replace("\r", " ").replace("\n", " ")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write(
    specs: Mapping[str, Field],
    measurement: str,
    tags: Mapping[str, str],
    fields: Mapping[str, Value],
    utc_ns: int | None,
) -> str:
    head = [_escape(measurement, ", ")]
    head += [f"{_escape(key, ',= ')}={_escape(tags[key], ',= ')}" for key in sorted(tags)]
    body = [f"{_escape(key, ',= ')}={_format(specs[key].kind, fields[key])}" for key in sorted(fields)]
    line = f"{','.join(head)} {','.join(body)}"
    return line if utc_ns is None else f"{line} {utc_ns}"


def encode(
    record: Record, common_tags: Mapping[str, str], seq: int, utc_ns: int, utc_error_ms: float | None = None
) -> str:
    """One line (no line break) for ``record`` with the common tags, its number, its time in ns since 1970 UTC and that time's error."""
    fields = {**record.fields, "seq": seq, "monotonic_ns": record.monotonic_ns}
    if utc_error_ms is not None:
        fields["utc_error_ms"] = round(utc_error_ms, 1)
    measurement = record.measurement
    return _write(SPECS[measurement], measurement, {**common_tags, **record.tags}, fields, utc_ns)


def encode_point(point: Point, specs: Mapping[str, Mapping[str, Field]] = SPECS) -> str:
    """The line of a parsed point again, its tags sorted; the time is left out when it has none. ``specs``: fields by measurement."""
    return _write(specs[point.measurement], point.measurement, point.tags, point.fields, point.utc_ns)


def parse(line: str) -> Point:
    """Read one line; RecordError names what is wrong. Names and ranges are not checked here (see ``record.check``)."""
    if "\\" not in line:
        plain = _parse_plain(line)
        if plain is not None:
            return plain
    return _parse_any(line)


def _parse_plain(line: str) -> Point | None:
    """The same as ``_parse_any``, several times faster, for lines without a backslash; None for those that it cannot read."""
    head, space, _ = line.partition(" ")
    name, *pairs = head.split(",")
    if not space or not name:
        return None
    tags: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if not key or not value or key in tags:
            return None
        tags[key] = value
    fields: dict[str, Value] = {}
    i, after = len(head) + 1, ","
    while after == ",":
        match = _PLAIN_FIELD(line, i)
        if match is None:
            return None
        key, text, whole, number, truth, after = match.groups()
        if key in fields:
            return None
        if number is not None:
            fields[key] = float(number)
        elif whole is not None:
            fields[key] = int(whole)
        elif text is not None:
            fields[key] = text
        else:
            fields[key] = truth == "true"
        i = match.end()
    if not after:
        return Point(name, tags, fields, None)
    time = line[i:]
    return Point(name, tags, fields, int(time)) if _TIME.match(time) else None


def _parse_any(line: str) -> Point:
    name, i = _token(line, 0, ", ")
    if not name:
        raise RecordError("no measurement name")
    tags: dict[str, str] = {}
    while i < len(line) and line[i] == ",":
        key, i = _token(line, i + 1, ",= ")
        if not key or i >= len(line) or line[i] != "=":
            raise RecordError(f"tag without a value in {line[:80]!r}")
        value, i = _token(line, i + 1, ", ")
        if not value:
            raise RecordError(f"tag {key!r} is empty")
        if key in tags:
            raise RecordError(f"tag {key!r} twice")
        tags[key] = value
    if i >= len(line) or line[i] != " ":
        raise RecordError(f"no fields in {line[:80]!r}")
    fields: dict[str, Value] = {}
    while i < len(line) and line[i] in (" " if not fields else ","):
        key, i = _token(line, i + 1, ",= ")
        if not key or i >= len(line) or line[i] != "=":
            raise RecordError(f"field without a value in {line[:80]!r}")
        if key in fields:
            raise RecordError(f"field {key!r} twice")
        fields[key], i = _value(line, i + 1, key)
    rest = line[i:]
    if not rest:
        return Point(name, tags, fields, None)
    if rest[0] != " " or not _TIME.match(rest[1:]):
        raise RecordError(f"{rest.strip()[:40]!r} is not a time in nanoseconds")
    return Point(name, tags, fields, int(rest[1:]))


def _token(line: str, start: int, ends: str) -> tuple[str, int]:
    out: list[str] = []
    i = start
    while i < len(line):
        char = line[i]
        if char == "\\" and i + 1 < len(line) and line[i + 1] in ",= ":
            out.append(line[i + 1])
            i += 2
            continue
        if char in ends:
            break
        out.append(char)
        i += 1
    return "".join(out), i


def _value(line: str, start: int, key: str) -> tuple[Value, int]:
    if start < len(line) and line[start] == '"':
        out: list[str] = []
        i = start + 1
        while i < len(line) and line[i] != '"':
            if line[i] == "\\" and i + 1 < len(line) and line[i + 1] in '"\\':
                i += 1
            out.append(line[i])
            i += 1
        if i >= len(line):
            raise RecordError(f"field {key!r}: text without its closing quote")
        return "".join(out), i + 1
    i = start
    while i < len(line) and line[i] not in ", ":
        i += 1
    text = line[start:i]
    if _INT.match(text):
        return int(text[:-1]), i
    if _FLOAT.match(text):
        return float(text), i
    if text in ("true", "false"):
        return text == "true", i
    raise RecordError(f"field {key!r}: {text[:40]!r} is no number, truth value or quoted text")
