"""Time ranges, and how wide a window is."""

from __future__ import annotations

import re
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
_FORMATS = (("y", 31_536_000_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


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
    """``90s`` → 90000; a bare number is seconds."""
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
    unit, size = next(((unit, size) for unit, size in _FORMATS if ms >= size), ("ms", 1))
    return f"{max(ms // size, 1)}{unit}"
