"""Where in a TOML text a key stands. Python's tomllib does not tell, and an error without a line is hard to mend. Pure.

It is no second parser: it scans text that tomllib has accepted, and answers None rather than a wrong line.
"""

from __future__ import annotations

import re

Place = tuple[str | int, ...]
"""Keys from the top; an element of a list of tables by its number from 0: ("path", 1, "modem", "port")."""

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?\Z")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"((?:[^"\\]|\\.)*)"|'([^']*)'""")


def places(text: str) -> dict[Place, int]:
    """Line (from 1) of every table and key found in ``text``."""
    found: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    closing: str | None = None
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if closing is not None:  # within a text of several lines
            if closing in line:
                closing = None
            continue
        if depth > 0:  # within a list of several lines
            depth += _opened(line)
            continue
        header = _HEADER.match(line)
        if header is not None and "=" not in header[2].partition("#")[0]:
            table = _table(_parts(header[2]), header[1] == "[[", counts)
            found.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key is None:
            continue
        parts = _parts(key[1])
        for upto in range(1, len(parts) + 1):
            found.setdefault((*table, *parts[:upto]), number)
        rest = line[key.end() :]
        for quotes in ('"""', "'''"):
            if rest.count(quotes) % 2:
                closing = quotes
        if closing is None:
            depth = _opened(rest)
    return found


def line_of(found: dict[Place, int], place: Place) -> int | None:
    """The line of ``place``, or of the innermost table around it that has one."""
    while place:
        if place in found:
            return found[place]
        place = place[:-1]
    return None


def _parts(text: str) -> tuple[str, ...]:
    return tuple(m[1] if m[1] is not None else m[2] if m[2] is not None else m[0] for m in _PART.finditer(text))


def _table(parts: tuple[str, ...], listed: bool, counts: dict[Place, int]) -> Place:
    """The place of a header, with the number of the list's element where a part is a list of tables."""
    place: Place = ()
    for index, part in enumerate(parts):
        place = (*place, part)
        if listed and index == len(parts) - 1:
            counts[place] = counts.get(place, -1) + 1
        if place in counts:
            place = (*place, counts[place])
    return place


def _opened(text: str) -> int:
    """Brackets opened less those closed, outside of quotes and comments."""
    plain = re.sub(r"""\"(?:[^"\\]|\\.)*\"|'[^']*'""", "", text).partition("#")[0]
    return plain.count("[") + plain.count("{") - plain.count("]") - plain.count("}")
