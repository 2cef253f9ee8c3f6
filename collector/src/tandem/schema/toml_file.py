"""TOML files that people write (configuration, campaigns): what a key may be, the line where it stands, and their reader. Pure.

Python's tomllib gives no lines. ``places`` is no second parser: it scans text that tomllib has accepted, and answers None rather than a
wrong line.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "number", "whole", "truth"]
WORDS = {"text": "text in quotes", "number": "a number", "whole": "a whole number", "truth": "true or false"}


@dataclass(frozen=True, slots=True)
class Key:
    """One key. Range inclusive unless ``above`` is set (then the minimum itself is too small); ``check`` returns what is wrong
    with a value, None when nothing; ``default`` None and not ``required``: may be absent; ``private``: no message quotes the value;
    ``hint``: what would be right."""

    name: str
    kind: Kind
    hint: str
    required: bool = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    above: bool = False
    choices: tuple[str, ...] = ()
    check: Callable[[str], str | None] | None = None
    private: bool = False

    def wrong(self, value: object) -> str | None:
        """What is wrong with ``value``; None when nothing."""
        found = self._wrong(value)
        return "not a value that can be (it is private and not shown)" if found is not None and self.private else found

    def _wrong(self, value: object) -> str | None:
        if self.kind == "truth":
            return None if isinstance(value, bool) else f"{value!r} is not true or false"
        if self.kind == "text":
            return self._text_wrong(value)
        allowed = (int,) if self.kind == "whole" else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed) or value != value:
            return f"{value!r} is not {WORDS[self.kind]}"
        low = self.minimum
        if low is not None and (value < low or (self.above and value == low)):
            return f"{value} is {'not above' if self.above else 'below'} {low:g}"
        if self.maximum is not None and value > self.maximum:
            return f"{value} is above {self.maximum:g}"
        return None if isinstance(value, int) or math.isfinite(value) else f"{value!r} is no finite number"

    def _text_wrong(self, value: object) -> str | None:
        if not isinstance(value, str):
            return f"{value!r} is not text in quotes"
        if not value or not value.isprintable():
            return "the text is empty or has control characters"
        if self.choices and value not in self.choices:
            return f"{value!r} is none of {', '.join(self.choices)}"
        return self.check(value) if self.check is not None else None


def no_toml(file: object, text: str, error: ValueError | RecursionError, hint: str) -> str:
    """One line for what tomllib says of a ``file`` with this ``text``."""
    what, _, rest = str(error).partition(" (at ")
    number = rest.partition("line ")[2].partition(",")[0]
    if not number.isdigit():
        number = str(max(1, len(text.splitlines())))
    return f"{file}:{number}: no TOML: {what[:1].lower() + what[1:]}; hint: {hint}"


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


class TomlReader:
    """The content of a file, checked table by table. A fault is an ``error`` of one line: file, line, what is wrong, hint."""

    error: type[ValueError] = ValueError

    def __init__(self, text: str, file: object, hint: str) -> None:
        """``hint``: of what is no TOML."""
        self.file = file
        try:
            self.content: dict[str, Any] = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError: no TOML, or a number of thousands of digits
            raise self.error(no_toml(file, text, error, hint)) from error
        self.lines = places(text)

    def fail(self, place: Place, what: str, hint: str) -> ValueError:
        return self.error(f"{self.file}:{self.line(place)}: {what}; hint: {hint}")

    def line(self, place: Place) -> int:
        """Where it was written, 1 when that is not known."""
        return line_of(self.lines, place) or 1

    def table(self, value: object, place: Place) -> dict[str, Any]:
        if not isinstance(value, dict):
            header = f"[{'.'.join(part for part in place if isinstance(part, str))}]"
            alone = " on a line of its own" if len(place) == 1 else ""
            raise self.fail(place, f"{str(place[-1])!r} is no table", f"begin it with {header}{alone}")
        return value

    def only(self, content: Mapping[str, Any], known: Iterable[str], place: Place, where: str) -> None:
        names = tuple(known)
        for name in content:
            if name not in names:
                raise self.fail((*place, name), f"unknown key {name!r} in {where}", self.hint_for_name(name, names))

    def hint_for_name(self, name: str, known: Sequence[str]) -> str:  # noqa: ARG002 for readers that know better
        return f"known are {', '.join(known)}"

    def named(self, where: str, name: str) -> str:
        return f"{where} {name}"

    def checked(self, keys: Sequence[Key], content: Mapping[str, Any], place: Place, where: str) -> dict[str, Any]:
        """The values of ``keys`` with defaults; others in ``content`` are left alone."""
        for key in keys:
            if key.name in content:
                if (wrong := key.wrong(content[key.name])) is not None:
                    raise self.fail((*place, key.name), f"{self.named(where, key.name)}: {wrong}", key.hint)
            elif key.required:
                raise self.fail(place, f"{where} has no {key.name!r}", f"add it: {key.hint}")
        return {key.name: content.get(key.name, key.default) for key in keys}


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
