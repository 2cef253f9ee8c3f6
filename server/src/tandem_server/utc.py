"""Times in UTC, and durations, as text: for files, JSON and people."""

from __future__ import annotations

from datetime import UTC, datetime

ISO = "%Y-%m-%dT%H:%M:%S+00:00"
SECOND = "%Y-%m-%dT%H:%M:%SZ"
MINUTE = "%Y-%m-%dT%H:%MZ"
SPACED = "%Y-%m-%d %H:%M:%S"


def utc(utc_ns: int | None, form: str = ISO, never: str = "never") -> str:
    """``utc_ns`` in ``form`` (strftime's); ``never`` for None. What no calendar has is "no time": a probe may claim any."""
    if utc_ns is None:
        return never
    try:
        return datetime.fromtimestamp(utc_ns // 10**9, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return "no time"


def duration(seconds: float) -> str:
    """In the largest of days, hours, minutes and seconds of which there are two or more; nothing below 0."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
