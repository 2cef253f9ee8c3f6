"""Times in UTC as text, for files, JSON and people."""

from __future__ import annotations

from datetime import UTC, datetime

ISO = "%Y-%m-%dT%H:%M:%S+00:00"
SECOND = "%Y-%m-%dT%H:%M:%SZ"
MINUTE = "%Y-%m-%dT%H:%MZ"


def utc(utc_ns: int | None, form: str = ISO, never: str = "never") -> str:
    """``utc_ns`` in ``form`` (strftime's); ``never`` for None. What no calendar has is "no time": a probe may claim any."""
    if utc_ns is None:
        return never
    try:
        return datetime.fromtimestamp(utc_ns / 1e9, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return "no time"
