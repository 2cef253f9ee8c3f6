"""Figures as Go and Prometheus write them in templates: after ``fmt`` and ``prometheus/template`` (``humanizeDuration`` and its like)."""

from __future__ import annotations

import math

_BINARY = ("", "ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")


def general(value: float, digits: int) -> str:
    """``%.4g``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.{digits}g}"


def printed(pattern: str, *values: object) -> str:
    """``printf`` with ``%v``, ``%s``, ``%d``, ``%.Nf``, ``%.Ng``; ValueError for others."""
    text, rest = "", pattern
    left = list(values)
    while "%" in rest:
        before, _, rest = rest.partition("%")
        text += before
        if rest.startswith("%"):
            text, rest = text + "%", rest[1:]
            continue
        verb = next((i for i, letter in enumerate(rest) if letter.isalpha()), None)
        if verb is None or not left:
            raise ValueError(f"printf {pattern!r} does not fit its values")
        text += _verb(rest[: verb + 1], left.pop(0))
        rest = rest[verb + 1 :]
    if left:
        raise ValueError(f"printf {pattern!r} does not fit its values")
    return text + rest


def _verb(verb: str, value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if verb in ("v", "s") and isinstance(value, str | int):
        return str(value)
    if verb == "d" and isinstance(value, int):
        return str(value)
    if number and verb[0] == "." and verb[1:-1].isdigit() and verb[-1] in "fg":
        return format(value, verb)
    raise ValueError(f"printf knows no %{verb} of {value!r} here")


def humanize_1024(value: float) -> str:
    """``1.5Gi``."""
    if not math.isfinite(value) or abs(value) <= 1:
        return general(value, 4)
    power = 0
    while abs(value) >= 1024 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return general(value, 4) + _BINARY[power]


def humanize_percentage(value: float) -> str:
    """``85.3%`` of 0.853."""
    return general(value * 100, 4) + "%"


def humanize_duration(value: float) -> str:
    """``2d 3h 4m 5s`` of seconds."""
    if not math.isfinite(value):
        return general(value, 4)
    if value == 0:
        return "0s"
    if abs(value) >= 1:
        sign, whole = ("-" if value < 0 else ""), int(abs(value))
        seconds, minutes, hours, days = whole % 60, whole // 60 % 60, whole // 3600 % 24, whole // 86_400
        if days:
            return f"{sign}{days}d {hours}h {minutes}m {seconds}s"
        if hours:
            return f"{sign}{hours}h {minutes}m {seconds}s"
        if minutes:
            return f"{sign}{minutes}m {seconds}s"
        return f"{sign}{general(abs(value), 4)}s"
    for prefix in ("m", "u", "n"):
        value *= 1000
        if abs(value) >= 1:
            return f"{general(value, 4)}{prefix}s"
    return f"{general(value, 4)}ns"
