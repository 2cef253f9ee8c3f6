"""Which part of a file a request asks for (RFC 9110, 13.1 and 14). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

_ONE_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})\Z")
"""Several ranges in one request, or another unit, are answered by the whole file, as 14.2 allows."""
_ETAG = re.compile(r'(?:W/)?"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Part:
    """``status`` 200: all of it; 206: from ``start`` up to, not including, ``end``; 304, 412, 416: nothing is sent."""

    status: Literal[200, 206, 304, 412, 416]
    start: int
    end: int


def part_of(headers: Mapping[str, str], length: int, tag: str) -> Part:
    """``headers`` with names in lower case; ``tag``: of the file as it is, without quotes."""
    if (match := headers.get("if-match")) is not None and not _names(match, tag, weak=False):
        return Part(412, 0, 0)
    if (none_match := headers.get("if-none-match")) is not None and _names(none_match, tag, weak=True):
        return Part(304, 0, 0)
    requested = headers.get("range", "") if headers.get("if-range", f'"{tag}"').strip() == f'"{tag}"' else ""
    return byte_range(requested.strip(), length, backwards=200)


def byte_range(requested: str, length: int, backwards: Literal[200, 416] = 416) -> Part:
    """What ``Range: requested`` is of a file of ``length`` bytes; empty: all of it. ``backwards``: the status where the last byte is before
    the first, which is no range at all."""
    match = _ONE_RANGE.match(requested)
    if match is None or match[0] == "bytes=-":
        return Part(200, 0, length)
    first, last = match[1], match[2]
    if first == "":
        start, end = max(0, length - int(last)), length
    else:
        start, end = int(first), min(length, int(last) + 1 if last else length)
        if last and int(last) < start and backwards == 200:
            return Part(200, 0, length)
    return Part(206, start, end) if start < end else Part(416, 0, 0)


def _names(listed: str, tag: str, *, weak: bool) -> bool:
    if listed.strip() == "*":
        return True
    return any(found[1] == tag and (weak or not found[0].startswith("W/")) for found in _ETAG.finditer(listed))
