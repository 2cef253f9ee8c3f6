"""Reading TOML strictly: every key typed and ranged, unknown keys refused, errors with the line of the key.

``tomllib`` forgets lines, so the line is found by scanning the text for the header and the key. Keys inside inline tables or
written dotted are found by the line of their table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tandem_bench import UsageError

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*(?:\"([^\"]+)\"|'([^']+)'|([A-Za-z0-9_-]+))\s*[=.]")
_AT_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


class ScenarioError(UsageError):
    """What bad scenario files and bad recordings raise, one line for people: file, line, what is wrong, and the hint."""

    def __init__(self, where: str | Path, line: int | None, what: str, hint: str) -> None:
        place = f"{where}" if line is None else f"{where}:{line}"
        super().__init__(" ".join(f"{place}: {what}; {hint}".split()))


def parse(where: str, text: str) -> dict[str, Any]:
    """The document as dictionaries; ScenarioError when it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        line = int(at[1]) if at and at[1] else len(text.splitlines()) or 1
        raise ScenarioError(where, line, f"not TOML: {_AT_LINE.sub('', str(error))}", "correct this line") from None
    except ValueError as error:
        # A number with more digits than Python converts.
        raise ScenarioError(where, 1, f"not TOML: {error}", "write shorter numbers") from None
    except RecursionError:
        raise ScenarioError(where, 1, "not TOML: nested too deep", "write plain tables") from None


def lines_of(text: str) -> dict[tuple[str, ...], int]:
    """Line numbers by path: ``("phase", "1", "speed_m_s")`` is that key in the second ``[[phase]]``."""
    found: dict[tuple[str, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    here: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            parts = [p.strip().strip("\"'") for p in header[2].split(".")]
            here = ()
            for depth, part in enumerate(parts):
                here = (*here, part)
                if depth == len(parts) - 1 and header[1] == "[[":
                    counts[here] = counts.get(here, -1) + 1
                if here in counts:
                    here = (*here, str(counts[here]))
            found.setdefault(here, number)
        elif key := _KEY.match(line):
            found.setdefault((*here, key[1] or key[2] or key[3]), number)
    return found


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Table:
    """One TOML table being read. Each getter takes its key; ``end`` refuses what nobody took."""

    def __init__(
        self, where: str, lines: dict[tuple[str, ...], int], path: tuple[str, ...], values: dict[str, Any]
    ) -> None:
        self._where, self._lines, self._path, self._values = where, lines, path, values
        self._taken: list[str] = []

    @classmethod
    def of(cls, where: str, text: str) -> Table:
        """The whole document."""
        return cls(where, lines_of(text), (), parse(where, text))

    def error(self, key: str | None, what: str, hint: str) -> ScenarioError:
        """An error at the line of ``key``, or of the table itself."""
        path = self._path if key is None else (*self._path, key)
        while path and path not in self._lines:
            path = path[:-1]
        name = ".".join(p for p in (*self._path, key or "") if p and not p.isdigit())
        return ScenarioError(self._where, self._lines.get(path, 1), f"{name}: {what}" if name else what, hint)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def _take(self, key: str, default: Any) -> Any:  # noqa: ANN401 - whatever TOML holds; the caller checks its type
        self._taken.append(key)
        if key not in self._values and default is None:
            raise self.error(None, f"{key} is missing", f"add {key} = … to this table")
        return self._values.get(key, default)

    def number(self, key: str, default: float | None, low: float, high: float) -> float:
        """A finite number from ``low`` to ``high``; ``default`` None makes the key required."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, f"{_shown(value)} is not a number", f"give a number from {low:g} to {high:g}")
        if not low <= value <= high:
            raise self.error(key, f"{_shown(value)} is out of range", f"give a number from {low:g} to {high:g}")
        return float(value)

    def whole(self, key: str, default: int | None, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.error(key, f"{_shown(value)} is no whole number in range", f"give one from {low} to {high}")
        return value

    def text(self, key: str, default: str | None, pattern: str, hint: str) -> str:
        """Text that matches ``pattern`` as a whole."""
        value = self._take(key, default)
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise self.error(key, f"{_shown(value)} does not fit", hint)
        return value

    def choice(self, key: str, default: str | None, words: Sequence[str]) -> str:
        """One of ``words``."""
        return self.text(key, default, "|".join(words), f"use one of: {', '.join(words)}")

    def numbers(self, key: str, default: Sequence[float] | None, low: float, high: float, count: range) -> list[float]:
        """A list of numbers from ``low`` to ``high``, as many as ``count`` allows."""
        value = self._take(key, default)
        hint = f"give a list of {count.start} to {count.stop - 1} numbers from {low:g} to {high:g}"
        if not isinstance(value, list | tuple) or len(value) not in count:
            raise self.error(key, f"{_shown(value)} does not fit", hint)
        for item in value:
            if isinstance(item, bool) or not isinstance(item, int | float) or not low <= item <= high:
                raise self.error(key, f"{_shown(item)} does not fit", hint)
        return [float(item) for item in value]

    def table(self, key: str) -> Table:
        """The table under ``key``; an absent one is empty."""
        self._taken.append(key)
        value = self._values.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, f"{_shown(value)} is not a table", f"write [{key}]")
        return Table(self._where, self._lines, (*self._path, key), value)

    def tables(self, key: str) -> list[Table]:
        """The tables of the array ``[[key]]``; none when absent."""
        self._taken.append(key)
        value = self._values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(key, "not an array of tables", f"write [[{key}]]")
        return [Table(self._where, self._lines, (*self._path, key, str(i)), v) for i, v in enumerate(value)]

    def end(self) -> None:
        """Refuse keys that no getter asked for."""
        for key in self._values:
            if key not in self._taken:
                raise self.error(key, "unknown key", f"remove it, or use one of: {', '.join(sorted(self._taken))}")
