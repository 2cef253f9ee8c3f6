"""Numbers as people read them."""

from __future__ import annotations

import math
import unicodedata

from tandem_server.utc import SPACED, utc

ABSENT = "–"
THIN = "\u202f"


def count(value: int | None) -> str:
    """A whole number in groups of three."""
    return ABSENT if value is None else f"{value:,}".replace(",", THIN)


def fixed(value: float | None, digits: int = 1) -> str:
    """A number with a fixed number of decimals, a true minus sign."""
    if value is None or not math.isfinite(value):
        return ABSENT
    return f"{value:,.{digits}f}".replace(",", THIN).replace("-", "−")


def mega(bit_per_s: float | None) -> str:
    """Mbit/s with three figures."""
    if bit_per_s is None or not math.isfinite(bit_per_s):
        return ABSENT
    value = bit_per_s / 1e6
    return fixed(value, 0 if value >= 100 else 1 if value >= 10 else 2)


def percent(value: float | None, digits: int = 0) -> str:
    """A share of 1 as per cent."""
    return ABSENT if value is None else f"{fixed(value * 100, digits)}{THIN}%"


def size(value: float | None) -> str:
    """Bytes in decimal units."""
    if value is None:
        return ABSENT
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000 or unit == "GB":
            return f"{fixed(value, 0 if unit == 'B' or abs(value) >= 100 else 1)}{THIN}{unit}"
        value /= 1000
    raise AssertionError("the last unit returns")


def moment(utc_ns: int | None) -> str:
    """A time on the wall clock in UTC, to the second."""
    return utc(utc_ns, f"{SPACED} UTC", ABSENT)


def clock(seconds: float | None) -> str:
    """Seconds since the start as m:ss."""
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
    whole = round(abs(seconds))
    return f"{'−' if seconds < -0.5 else ''}{whole // 60}:{whole % 60:02d}"


def cell(eci: int | None) -> str:
    """An LTE cell as eNodeB and sector."""
    return ABSENT if eci is None else f"{eci >> 8}/{eci & 255}"


def visible(value: str) -> str:
    """A text from outside that cannot move what stands around it: what no font shows (control characters, marks that turn the
    direction of writing, halves of characters) as U+FFFD."""
    if value.isprintable():
        return value
    return "".join("\ufffd" if unicodedata.category(one)[0] == "C" or one in "\u2028\u2029" else one for one in value)


def plain(value: str, most: int = 300) -> str:
    """The same, and not longer than ``most``."""
    return visible(value[:most]) + ("…" if len(value) > most else "")
