"""Time ranges, how wide a window is, and variables and macros into a query: first as the front end does, then as the backend does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

_UNITS_MS = {
    "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "M": 2_592_000_000, "y": 31_536_000_000,
}  # fmt: skip
_STEPS_MS = (
    (10, 1), (15, 10), (35, 20), (75, 50), (150, 100), (350, 200), (750, 500), (1500, 1000), (3500, 2000), (7500, 5000),
    (12500, 10000), (17500, 15000), (25000, 20000), (45000, 30000), (90000, 60000), (210000, 120000), (450000, 300000),
    (750000, 600000), (1050000, 900000), (1500000, 1200000), (2700000, 1800000), (5400000, 3600000), (9000000, 7200000),
    (16200000, 10800000), (32400000, 21600000), (86400000, 43200000), (604800000, 86400000), (1814400000, 604800000),
    (3628800000, 2592000000),
)  # fmt: skip
"""roundInterval: below the first, the second."""
_TEXTS = (("y", 31_536_000_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


class TimeError(ValueError):
    """A time or a duration that is none; the message says what is allowed."""


@dataclass(frozen=True)
class Range:
    """From one instant to another, in ms since 1970."""

    from_ms: int
    to_ms: int

    @property
    def influxql(self) -> str:
        """What ``$timeFilter`` becomes."""
        return f"time >= {self.from_ms}ms and time <= {self.to_ms}ms"


def duration_ms(text: str) -> int:
    """``90s`` → 90000; a bare number is seconds. TimeError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|[smhdwMy])?", text)
    if not found:
        raise TimeError(f"{text!r} is no duration; hint: a number with {', '.join(_UNITS_MS)}")
    return round(float(found[1]) * _UNITS_MS[found[2] or "s"])


def instant_ms(text: str, now_ms: int) -> int:
    """``now``, ``now-6h``, ms since 1970, or a time of ISO 8601 with its zone."""
    if text == "now":
        return now_ms
    if text.startswith("now-"):
        return now_ms - duration_ms(text[4:])
    if text.isdecimal():
        return int(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise TimeError(
            f"{text!r} is no time; hint: now, now-6h, ms since 1970, or 2026-11-22T09:00:00+00:00 with its zone"
        )
    return round(when.timestamp() * 1000)


def range_of(since: str, until: str, now_ms: int) -> Range:
    """The range between two such texts; TimeError when it is empty."""
    found = Range(instant_ms(since, now_ms), instant_ms(until, now_ms))
    if found.from_ms >= found.to_ms:
        raise TimeError(f"from {since} to {until} is no time at all")
    return found


def interval_ms(span: Range, points: int, least: str | None = None) -> int:
    """How wide a window is for so many points: calculateInterval, with its rounding."""
    wanted = (span.to_ms - span.from_ms) / points
    rounded = next((step for limit, step in _STEPS_MS if wanted < limit), 31_536_000_000)
    return max(rounded, duration_ms(least) if least else 1)


def interval_text(ms: int) -> str:
    """As Grafana's backend writes it into the query: one unit, rounded down."""
    unit, size = next(((unit, size) for unit, size in _TEXTS if ms >= size), ("ms", 1))
    return f"{max(ms // size, 1)}{unit}"


_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)(?::(\w+))?\}")
_SPECIAL = re.compile(r"[\\^$*+?.()|\[\]{}/]")


class FormatError(ValueError):
    """A variable is written in a way that is not known here."""


@dataclass(frozen=True)
class Chosen:
    """What is chosen in a variable. ``everything``: All is chosen, and becomes this text as it is."""

    values: tuple[str, ...]
    everything: str | None = None


def escaped(value: str) -> str:
    """Fit for a regular expression between slashes."""
    return _SPECIAL.sub(r"\\\g<0>", value)


def _regex(values: tuple[str, ...]) -> str:
    several = [escaped(value) for value in values]
    return several[0] if len(several) == 1 else "(" + "|".join(several) + ")"


_FORMATS: dict[str, Callable[[tuple[str, ...]], str]] = {"": " + ".join, "regex": _regex, "raw": ",".join}
"""Those that boards here use. Without one: a title's."""


def replaced(text: str, chosen: Mapping[str, Chosen]) -> str:
    """``text`` with variables in it; what is not known, macros of the backend among it, stays as it stands."""

    def put(found: re.Match[str]) -> str:
        name, form = found[1] or found[2], found[3] or ""
        if name not in chosen:
            return found[0]
        if form not in _FORMATS:
            raise FormatError(
                f"${{{name}:{form}}}: the format {form!r} is not known; known: {', '.join(filter(None, _FORMATS))}"
            )
        everything = chosen[name].everything
        return _FORMATS[form](chosen[name].values) if everything is None else everything

    return _VARIABLE.sub(put, text)


def expanded(text: str, chosen: Mapping[str, Chosen], span: Range, window_ms: int) -> str:
    """The query as it goes to the database."""
    query = replaced(text, chosen).replace("$timeFilter", span.influxql)
    query = query.replace("$__from", str(span.from_ms)).replace("$__to", str(span.to_ms))
    return query.replace("$__interval_ms", str(window_ms)).replace("$__interval", interval_text(window_ms))
