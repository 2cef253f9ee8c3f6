"""gpsd's reports, read: one JSON object a line, from gpsd_json(5), protocol 3 (gpsd 3.22 to 3.25). Pure; never raises."""

from __future__ import annotations

import json
import math
import re
from calendar import timegm
from dataclasses import dataclass
from typing import Any

WATCH = b'?WATCH={"enable":true,"json":true};\n'
"""The request that makes gpsd report."""


@dataclass(frozen=True, slots=True)
class Tpv:
    """Time, position, velocity. ``mode``: 0 not told, 1 no fix, 2 two-dimensional, 3 three-dimensional; below 2 there is no
    position. Quantities as in ``schema.metrics.POSITION``; ``error_m``: gpsd's ``eph``, else from ``epx`` and ``epy``."""

    mode: int
    device: str | None = None
    time_utc_ns: int | None = None
    latitude_deg: float | None = None
    longitude_deg: float | None = None
    altitude_m: float | None = None
    speed_m_per_s: float | None = None
    track_deg: float | None = None
    error_m: float | None = None


@dataclass(frozen=True, slots=True)
class Sky:
    """Satellites. A report may hold only a part of it: gpsd 3.25 tells dilution and satellites apart."""

    device: str | None = None
    hdop: float | None = None
    satellites_used: int | None = None
    satellites_seen: int | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """Who answers. ``protocol``: its major number, None when not told."""

    release: str
    protocol: int | None


@dataclass(frozen=True, slots=True)
class Devices:
    """The receivers that gpsd knows, by path."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pulse:
    """One instant by the receiver (``real_ns``) and by the system's clock (``clock_ns``), both UTC. ``kind``: PPS, the edge of its
    pulse, or TOFF, the beginning of its sentences."""

    kind: str
    device: str | None
    real_ns: int
    clock_ns: int


@dataclass(frozen=True, slots=True)
class Broken:
    """What is no report: why. It never quotes the line, which may hold a position."""

    why: str


Report = Tpv | Sky | Version | Devices | Pulse | Broken

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?Z", re.ASCII)


def read(line: bytes) -> Report | None:
    """The report in one line; None for those that say nothing of interest (WATCH, GST and whatever comes later)."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return Broken("no JSON")
    if not isinstance(told, dict):
        return Broken("no JSON object")
    match told.get("class"):
        case "TPV":
            return _tpv(told)
        case "SKY":
            return _sky(told)
        case "VERSION":
            major = told.get("proto_major")
            return Version(_text(told.get("release")) or "", major if type(major) is int else None)
        case "DEVICES" | "DEVICE":
            listed = told.get("devices") if told["class"] == "DEVICES" else [told]
            rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
            return Devices(tuple(path for row in rows if (path := _text(row.get("path")))))
        case "PPS" | "TOFF":
            return _pulse(told)
        case "ERROR":
            return Broken("gpsd reports an error")
        case str():
            return None
    return Broken("an object without class")


def _tpv(told: dict[str, Any]) -> Tpv:
    mode = told.get("mode")
    if type(mode) is not int or not 0 <= mode <= 3:
        mode = 0
    device, time_ns = _text(told.get("device")), _time_ns(told.get("time"))
    latitude, longitude = _number(told.get("lat"), -90, 90), _number(told.get("lon"), -180, 180)
    if mode < 2 or latitude is None or longitude is None:
        # A mode that promises a position without one is no fix.
        return Tpv(min(mode, 1), device, time_ns)
    # altMSL since 3.20; alt before it, and still there, means the same.
    altitude = _number(told.get("altMSL", told.get("alt")), -1000, 20000)
    error = _number(told.get("eph"), 0, 100000)
    if error is None:
        x, y = _number(told.get("epx"), 0, 100000), _number(told.get("epy"), 0, 100000)
        error = None if x is None or y is None else min(100000.0, math.hypot(x, y))
    return Tpv(
        mode,
        device,
        time_ns,
        latitude,
        longitude,
        altitude if mode == 3 else None,
        _number(told.get("speed"), 0, 500),
        _number(told.get("track"), 0, 360),
        error,
    )


def _sky(told: dict[str, Any]) -> Sky:
    seen, used = _count(told.get("nSat")), _count(told.get("uSat"))
    satellites = told.get("satellites")
    if isinstance(satellites, list):
        rows = [row for row in satellites if isinstance(row, dict)]
        seen = _count(len(rows))
        used = _count(sum(row.get("used") is True for row in rows))
    return Sky(_text(told.get("device")), _number(told.get("hdop"), 0, 100), used, seen)


def _pulse(told: dict[str, Any]) -> Pulse | None:
    """None when a part of it is missing: gpsd tells pulses before it knows which second they are."""
    parts = [told.get(name) for name in ("real_sec", "real_nsec", "clock_sec", "clock_nsec")]
    numbers = [part for part in parts if type(part) is int and 0 <= part < 2**40]
    if len(numbers) != len(parts) or numbers[1] >= 10**9 or numbers[3] >= 10**9:
        return None
    real_s, real_ns, clock_s, clock_ns = numbers
    return Pulse(str(told["class"]), _text(told.get("device")), real_s * 10**9 + real_ns, clock_s * 10**9 + clock_ns)


def _number(value: object, least: float, most: float) -> float | None:
    """A number within what can be; gpsd writes none for what it does not know, and old receivers nonsense."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if least <= value <= most else None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= 200 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= 256 else None


def _time_ns(value: object) -> int | None:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    if not (year >= 1980 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60):
        return None
    return timegm((year, month, day, hour, minute, second)) * 10**9 + int((found[7] or "").ljust(9, "0"))
