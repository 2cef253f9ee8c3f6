"""Reports of a receiver or of gpsd, and the fix that they make together. Pure."""

from __future__ import annotations

import json
import math
import re
from calendar import timegm
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

WATCH = b'?WATCH={"enable":true,"json":true};\n'
"""The request that makes gpsd report."""


@dataclass(frozen=True, slots=True)
class Tpv:
    """Time, position, velocity. ``mode``: 0 not reported, 1 no fix, 2 two-dimensional, 3 three-dimensional; below 2 there is no
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


Report = Tpv | Sky | Pulse | Broken

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?Z", re.ASCII)


def read(line: bytes) -> Report | None:
    """The report in one line; None for those that say nothing of interest (VERSION, DEVICES, WATCH and whatever comes later)."""
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        return Broken("no JSON")
    if not isinstance(report, dict):
        return Broken("no JSON object")
    match report.get("class"):
        case "TPV":
            return _tpv(report)
        case "SKY":
            return _sky(report)
        case "PPS" | "TOFF":
            return _pulse(report)
        case "ERROR":
            return Broken("gpsd reports an error")
        case str():
            return None
    return Broken("an object without class")


def _tpv(report: dict[str, Any]) -> Tpv:
    mode = report.get("mode")
    if type(mode) is not int or not 0 <= mode <= 3:
        mode = 0
    device, time_ns = _text(report.get("device")), _time_ns(report.get("time"))
    latitude, longitude = _number(report.get("lat"), -90, 90), _number(report.get("lon"), -180, 180)
    if mode < 2 or latitude is None or longitude is None:
        # A mode that promises a position without one is no fix.
        return Tpv(min(mode, 1), device, time_ns)
    # altMSL since 3.20; alt before it, and still there, means the same.
    altitude = _number(report.get("altMSL", report.get("alt")), -1000, 20000)
    error = _number(report.get("eph"), 0, 100000)
    if error is None:
        x, y = _number(report.get("epx"), 0, 100000), _number(report.get("epy"), 0, 100000)
        error = None if x is None or y is None else min(100000.0, math.hypot(x, y))
    return Tpv(
        mode,
        device,
        time_ns,
        latitude,
        longitude,
        altitude if mode == 3 else None,
        _number(report.get("speed"), 0, 500),
        _number(report.get("track"), 0, 360),
        error,
    )


def _sky(report: dict[str, Any]) -> Sky:
    seen, used = _count(report.get("nSat")), _count(report.get("uSat"))
    satellites = report.get("satellites")
    if isinstance(satellites, list):
        rows = [row for row in satellites if isinstance(row, dict)]
        seen = _count(len(rows))
        used = _count(sum(row.get("used") is True for row in rows))
    return Sky(_text(report.get("device")), _number(report.get("hdop"), 0, 100), used, seen)


def _pulse(report: dict[str, Any]) -> Pulse | None:
    """None when a part of it is missing: gpsd tells pulses before it knows which second they are."""
    parts = [report.get(name) for name in ("real_sec", "real_nsec", "clock_sec", "clock_nsec")]
    numbers = [part for part in parts if type(part) is int and 0 <= part < 2**40]
    if len(numbers) != len(parts) or numbers[1] >= 10**9 or numbers[3] >= 10**9:
        return None
    real_s, real_ns, clock_s, clock_ns = numbers
    return Pulse(
        str(report["class"]), _text(report.get("device")), real_s * 10**9 + real_ns, clock_s * 10**9 + clock_ns
    )


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


# ---------------------------------------------------------------------------------------------------------------------
# From gpsd's reports to one fix a second. Pure; time is an argument.


SETTLE_NS = 300_000_000
"""gpsd may tell of one epoch in several reports (NMEA brings time, place and height in sentences of their own): they are put together
until one of another epoch comes, or this long."""

SKY_FRESH_NS = 10_000_000_000
"""How long satellites and dilution hold: receivers tell them every second to every fifth."""

OLDEST_NS = 5_000_000_000
"""A fix that seems older, or younger than now, was not dated by the clock that we have: its arrival is its time."""


@dataclass(frozen=True, slots=True)
class Fix:
    """What a receiver found. ``monotonic_ns``: when it was true, by the receiver's own time when ``age_ms`` is there, else when it
    arrived. ``tpv.mode`` below 2: it looked and found nothing."""

    tpv: Tpv
    monotonic_ns: int
    age_ms: float | None = None
    hdop: float | None = None
    satellites_used: int | None = None
    satellites_seen: int | None = None

    @property
    def found(self) -> bool:
        return self.tpv.mode >= 2


class Fixes:
    """Fed with one connection's reports. ``utc_ns``: UTC of a CLOCK_MONOTONIC instant, None while the clock is not set.

    Of several receivers the first that has a fix is taken, until it has none for ``patience_s`` seconds.
    """

    def __init__(self, utc_ns: Callable[[int], int | None], patience_s: float) -> None:
        self._utc_ns, self._patience_ns = utc_ns, int(patience_s * 1e9)
        self._device: str | None = None
        self._found_ns: int | None = None
        self._open: tuple[Tpv, int] | None = None
        self._second: int | None = None
        self._given_ns: int | None = None
        self._sky: dict[str, tuple[int, float | int]] = {}

    def sky(self, sky: Sky, now_ns: int) -> None:
        if self._device is not None and sky.device != self._device:
            return
        for name in ("hdop", "satellites_used", "satellites_seen"):
            value = getattr(sky, name)
            if value is not None:
                self._sky[name] = (now_ns, value)

    def tpv(self, tpv: Tpv, now_ns: int) -> Fix | None:
        """A report of position; the fix that it completes: of the epoch before."""
        if not self._ours(tpv, now_ns):
            return None
        if self._open is not None:
            opened, arrived_ns = self._open
            if _same_epoch(opened, tpv, now_ns - arrived_ns):
                self._open = (_together(opened, tpv), arrived_ns)
                return None
        done = self._close()
        if tpv.time_utc_ns is None:
            # Before a receiver knows the time: one a second by arrival.
            if self._given_ns is None or now_ns - self._given_ns >= 900_000_000:
                self._open = (tpv, now_ns)
        elif tpv.time_utc_ns // 10**9 != self._second:  # a receiver may find a place five times a second
            self._open = (tpv, now_ns)
        return done

    def tick(self, now_ns: int) -> Fix | None:
        """The fix that is complete because nothing more came."""
        if self._open is None or now_ns - self._open[1] < SETTLE_NS:
            return None
        return self._close()

    def _ours(self, tpv: Tpv, now_ns: int) -> bool:
        if tpv.device != self._device and (
            self._found_ns is None or (tpv.mode >= 2 and now_ns - self._found_ns > self._patience_ns)
        ):
            self._device, self._open = tpv.device, None
            self._sky.clear()
        if tpv.device != self._device:
            return False
        if tpv.mode >= 2:
            self._found_ns = now_ns
        return True

    def _close(self) -> Fix | None:
        if self._open is None:
            return None
        (tpv, arrived_ns), self._open = self._open, None
        self._given_ns = arrived_ns
        self._second = None if tpv.time_utc_ns is None else tpv.time_utc_ns // 10**9
        return self._fix(tpv, arrived_ns)

    def _fix(self, tpv: Tpv, arrived_ns: int) -> Fix:
        true_ns, age_ms = arrived_ns, None
        utc_ns = self._utc_ns(arrived_ns)
        if utc_ns is not None and tpv.time_utc_ns is not None and 0 <= utc_ns - tpv.time_utc_ns <= OLDEST_NS:
            true_ns = max(0, arrived_ns - (utc_ns - tpv.time_utc_ns))
            age_ms = (utc_ns - tpv.time_utc_ns) / 1e6
        fresh = {name: value for name, (at, value) in self._sky.items() if arrived_ns - at <= SKY_FRESH_NS}
        used, seen = fresh.get("satellites_used"), fresh.get("satellites_seen")
        return Fix(
            tpv,
            true_ns,
            age_ms,
            fresh.get("hdop"),
            None if used is None else int(used),
            None if seen is None else int(seen),
        )


def _same_epoch(first: Tpv, later: Tpv, apart_ns: int) -> bool:
    """The same time; or, as in gpsd's first reports of a receiver, not yet a time on one of them."""
    if first.time_utc_ns is None or later.time_utc_ns is None:
        return apart_ns < SETTLE_NS
    return first.time_utc_ns == later.time_utc_ns


def _together(first: Tpv, later: Tpv) -> Tpv:
    """Two reports of one epoch: what the later knows holds; what it does not know stays. A position is never of two reports."""
    base, over = (first, later) if later.mode >= first.mode else (later, first)
    others = ("time_utc_ns", "altitude_m", "speed_m_per_s", "track_deg", "error_m")
    missing: dict[str, Any] = {name: getattr(base, name) for name in others if getattr(over, name) is None}
    return replace(over, **missing)
