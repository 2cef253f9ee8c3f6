"""Figures with their units, as Grafana writes them: of its units those that boards here use."""

from __future__ import annotations

import math

_SI = ("", "k", "M", "G", "T", "P")
_SCALED = {"bps": "b/s", "decbytes": "B", "Bps": "B/s"}
_PLAIN = {
    "dBm": " dBm", "dB": " dB", "percent": " %", "celsius": " °C", "velocityms": " m/s", "ppm": " ppm", "degree": "°",
    "cps": " c/s", "cpm": " c/m",
}  # fmt: skip
_TIMES_S = {"ns": 1e-9, "ms": 1e-3, "s": 1.0}
_SPANS = (
    (86_400 * 365, "years"),
    (86_400, "days"),
    (3600, "hours"),
    (60, "mins"),
    (1, "s"),
    (1e-3, "ms"),
    (1e-6, "µs"),
    (1e-9, "ns"),
)


def written(value: float, unit: str, decimals: int | None = None) -> str:
    """``12.3 Mb/s``, ``4.5 mins``, ``-97 dBm``."""
    if not math.isfinite(value):
        return str(value)
    if unit in _SCALED:
        step = 0
        while abs(value) >= 1000 and step < len(_SI) - 1:
            value, step = value / 1000, step + 1
        return f"{_digits(value, decimals)} {_SI[step]}{_SCALED[unit]}"
    if unit in _TIMES_S:
        seconds = value * _TIMES_S[unit]
        size, name = next(((size, name) for size, name in _SPANS if abs(seconds) >= size), (_TIMES_S[unit], unit))
        return f"{_digits(seconds / size, decimals)} {name}"
    if unit == "percentunit":
        return f"{_digits(value * 100, decimals)} %"
    if unit == "lengthm":
        return f"{_digits(value / 1000, decimals)} km" if abs(value) >= 1000 else f"{_digits(value, decimals)} m"
    if unit.startswith("suffix:"):
        return f"{_digits(value, decimals)} {unit.removeprefix('suffix:')}"
    return _digits(value, decimals) + _PLAIN.get(unit, "")


def _digits(value: float, decimals: int | None) -> str:
    """Three figures that count, or as many ``decimals``."""
    if decimals is not None:
        return f"{value:.{decimals}f}"
    if value == int(value):
        return str(int(value))
    places = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:.{min(places, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
