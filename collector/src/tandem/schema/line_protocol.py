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

_TIME = re.compile(r"-?[0-9]{1,19}\Z")
_TAG_CHARACTERS = 256
_UNFIT = re.compile(r'[\\"\x00-\x1f\x7f-\x9f\u2028\u2029]')
"""What InfluxDB's readers of a line understand in different ways (its first, which looks for the line's end, takes a blank behind two
backslashes for the end of the tags, and a quote behind it for the beginning of a text), or what a terminal acts upon."""
_NAMED = {"\\": "a backslash", '"': "a double quote", "\n": "a line break", "\r": "a line break"}
# The grammar. All of it is possessive: a backslash and what it escapes are never taken apart again.
_VALUE = r"[^, \\]*+(?:\\[,= ]?[^, \\]*+)*+"
_KEY = r"[^,= \\]*+(?:\\[,= ]?[^,= \\]*+)*+"
_NAME = re.compile(_VALUE).match
_TAG = re.compile(rf",({_KEY})(?:=({_VALUE}))?").match
_FIELD = re.compile(
    rf'({_KEY})=(?:"([^"\\]*+(?:\\["\\]?[^"\\]*+)*+)"'
    r"|(-?[0-9]{1,19})i|(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)|(true|false))(,| |\Z)"
).match
"""Name, then text, int, float or truth value, then what follows."""
_BROKEN_FIELD = re.compile(rf"({_KEY})(?:=([^, ]*))?").match
_ESCAPED, _ESCAPED_TEXT = re.compile(r"\\([,= ])"), re.compile(r'\\(["\\])')


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
    start = _NAME(line)
    if not start or not start[0]:
        raise RecordError("no measurement name")
    name, i = start[0], start.end()
    escaped = "\\" in line
    tags: dict[str, str] = {}
    while (match := _TAG(line, i)) is not None:
        key, value = match.groups()
        i = match.end()
        if not key or value is None:
            raise RecordError(f"tag without a value in {line[:80]!r}")
        if escaped:
            key, value = _ESCAPED.sub(r"\1", key), _ESCAPED.sub(r"\1", value)
        if not value:
            raise RecordError(f"tag {key!r} is empty")
        if key in tags:
            raise RecordError(f"tag {key!r} twice")
        tags[key] = value
    if not line.startswith(" ", i):
        raise RecordError(f"no fields in {line[:80]!r}")
    fields: dict[str, Value] = {}
    i, after = i + 1, ","
    while after == ",":
        match = _FIELD(line, i)
        if match is None:
            raise _field_fault(line, i)
        key, text, whole, number, truth, after = match.groups()
        if escaped:
            key, text = _ESCAPED.sub(r"\1", key), text and _ESCAPED_TEXT.sub(r"\1", text)
        if not key or key in fields:
            raise RecordError(f"field {key!r} twice" if key else f"field without a name in {line[:80]!r}")
        if number is not None:
            fields[key] = float(number)
        elif whole is not None:
            fields[key] = int(whole)
        else:
            fields[key] = text if text is not None else truth == "true"
        i = match.end()
    time = line[i:]
    if after and not _TIME.match(time):
        raise RecordError(f"{time.strip()[:40]!r} is not a time in nanoseconds")
    return Point(_ESCAPED.sub(r"\1", name) if escaped else name, tags, fields, int(time) if after else None)


def _field_fault(line: str, start: int) -> RecordError:
    """Why no field begins at ``start``."""
    match = _BROKEN_FIELD(line, start)
    if match is None or not match[1] or match[2] is None:
        return RecordError(f"field without a value in {line[:80]!r}")
    what = (
        "text without its closing quote, or with more behind it"
        if match[2].startswith('"')
        else "no number, truth value or quoted text"
    )
    return RecordError(f"field {match[1]!r}: {match[2][:40]!r} is {what}")
