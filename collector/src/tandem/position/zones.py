"""Where a probe's position is not reported: zones round homes, on a sphere, with a key of the probe's own."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import math
import os
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from tandem.position.reports import Fix
from tandem.schema.record import Record, Value

log = logging.getLogger(__name__)

BYTES = 32


def own_key(file: Path) -> bytes:
    """The key in ``file``, made (mode 0600) when there is none. A disk that takes none gives one for this start only: the hidden
    circles then move with the next start, which shows more of them, so the log says it."""
    with contextlib.suppress(OSError):
        found = file.read_bytes()
        if len(found) == BYTES:
            return found
    key = secrets.token_bytes(BYTES)
    unfinished = file.with_name(file.name + ".tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.unlink(missing_ok=True)
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as out:
            out.write(key)
            out.flush()
            os.fsync(fd)
        unfinished.replace(file)
    except OSError as error:
        log.warning(
            "%s: %s; home zones are hidden differently at each start; hint: free disk space", file, error.strerror
        )
    return key


# ---------------------------------------------------------------------------------------------------------------------
# Distances on the Earth taken as a ball: up to 0.6 % from those on WGS 84's ellipsoid. Pure.


RADIUS_M = 6_371_008.8
"""The ellipsoid's mean radius (IUGG)."""

METRES_A_DEGREE = RADIUS_M * math.pi / 180


@dataclass(frozen=True, slots=True)
class Point:
    """Degrees, WGS 84."""

    latitude_deg: float
    longitude_deg: float


def distance_m(a: Point, b: Point) -> float:
    """Along the great circle (haversine: exact also for metres)."""
    phi_a, phi_b = math.radians(a.latitude_deg), math.radians(b.latitude_deg)
    half = math.sin((phi_b - phi_a) / 2) ** 2
    half += math.cos(phi_a) * math.cos(phi_b) * math.sin(math.radians(b.longitude_deg - a.longitude_deg) / 2) ** 2
    return 2 * RADIUS_M * math.asin(math.sqrt(min(1.0, half)))


def moved(start: Point, bearing_deg: float, metres: float) -> Point:
    phi, angle, bearing = math.radians(start.latitude_deg), metres / RADIUS_M, math.radians(bearing_deg)
    sine = math.sin(phi) * math.cos(angle) + math.cos(phi) * math.sin(angle) * math.cos(bearing)
    there = math.asin(max(-1.0, min(1.0, sine)))
    east = math.atan2(
        math.sin(bearing) * math.sin(angle) * math.cos(phi), math.cos(angle) - math.sin(phi) * math.sin(there)
    )
    longitude = start.longitude_deg + math.degrees(east)
    return Point(math.degrees(there), (longitude + 540) % 360 - 180)


def nearest_m(a: Point, b: Point, centre: Point) -> float:
    """How near the way from ``a`` to ``b`` comes to ``centre``; on a plane through it, so for ways of some kilometres."""
    squeeze = math.cos(math.radians(centre.latitude_deg))

    def flat(point: Point) -> tuple[float, float]:
        east_deg = (point.longitude_deg - centre.longitude_deg + 540) % 360 - 180
        return east_deg * squeeze * METRES_A_DEGREE, (point.latitude_deg - centre.latitude_deg) * METRES_A_DEGREE

    (ax, ay), (bx, by) = flat(a), flat(b)
    dx, dy = bx - ax, by - ay
    length = dx * dx + dy * dy
    share = 0.0 if length == 0 else max(0.0, min(1.0, -(ax * dx + ay * dy) / length))
    return math.hypot(ax + share * dx, ay + share * dy)


# ---------------------------------------------------------------------------------------------------------------------
# Home zones: whether what the receiver says now may be reported at all. Pure but for the drawn margins. What leaves
# nothing is not the configured circle but a hidden one: twice its radius, its middle moved by up to nine tenths of
# the radius in a direction that only this probe's key knows. So whoever gathers the ends of many tracks finds the
# hidden circle, and from it that the home is somewhere within a configured radius of its middle, which is what was
# promised; and the configured circle lies inside it whole. docs/contributing/collector.md says what
# else can be learned.


MOST_OFFSET = 0.9
"""Of the configured radius. The tenth that is left covers the difference between ball and ellipsoid."""

MARGIN = 0.25
"""Each crossing's own margin is drawn from 0 to this part of the radius, so that one crossing does not show the edge."""

HYSTERESIS = 0.1
"""Leaving takes this part of the radius more than entering."""

DWELL_S = (10.0, 40.0)
"""And after leaving nothing is reported for a drawn time within these."""

ASSUMED_ERROR_M = 50.0
"""Of a fix whose receiver does not tell its error."""


@dataclass(frozen=True, slots=True)
class Zone:
    """As configured."""

    latitude_deg: float
    longitude_deg: float
    radius_m: float


class _Hidden:
    """One zone's circle and on which side of it the probe is. Until a fix shows otherwise it is inside."""

    def __init__(self, zone: Zone, key: bytes, draw: Random) -> None:
        text = f"{zone.latitude_deg:.6f},{zone.longitude_deg:.6f},{zone.radius_m:.1f}".encode()
        first, second = struct.unpack(">QQ", hmac.digest(key, b"tandem home zone " + text, hashlib.sha256)[:16])
        # The root makes every place within the disk equally likely.
        offset_m = MOST_OFFSET * zone.radius_m * math.sqrt(first / 2**64)
        self._centre = moved(Point(zone.latitude_deg, zone.longitude_deg), 360 * second / 2**64, offset_m)
        self._edge_m, self._unit_m, self._draw = 2 * zone.radius_m, zone.radius_m, draw
        self._last: Point | None = None
        self._outside_since_ns: int | None = None
        self._enter()

    def _enter(self) -> None:
        self.inside = True
        self._outside_since_ns = None
        self._margin_m = self._draw.uniform(0, MARGIN) * self._unit_m
        self._dwell_ns = int(self._draw.uniform(*DWELL_S) * 1e9)

    def covers(self, point: Point) -> bool:
        """Whether a point to be reported lies in the circle."""
        return distance_m(point, self._centre) <= self._edge_m

    def see(self, point: Point, error_m: float, monotonic_ns: int) -> None:
        """A fix, whether it is reported or not."""
        away_m = distance_m(point, self._centre) - error_m
        through = self._last is not None and nearest_m(self._last, point, self._centre) <= self._edge_m
        self._last = point
        if through or away_m <= self._edge_m + self._margin_m + (HYSTERESIS * self._unit_m if self.inside else 0):
            if not self.inside:
                self._enter()
            self._outside_since_ns = None
        elif self.inside:
            if self._outside_since_ns is None:
                self._outside_since_ns = monotonic_ns
            if monotonic_ns - self._outside_since_ns >= self._dwell_ns:
                self.inside = False
                self._margin_m = self._draw.uniform(0, MARGIN) * self._unit_m


class Zones:
    """``key``: this probe's secret; ``draw``: a source of randomness that nobody can repeat (tests give a seeded one)."""

    def __init__(self, zones: Sequence[Zone], key: bytes, draw: Random) -> None:
        self._hidden = [_Hidden(zone, key, draw) for zone in zones]

    @property
    def inside(self) -> bool:
        """Whether the probe is in one of them, as far as is known."""
        return any(zone.inside for zone in self._hidden)

    def see(self, point: Point, error_m: float | None, monotonic_ns: int) -> None:
        """A fix: every one that there is, in order."""
        for zone in self._hidden:
            zone.see(point, ASSUMED_ERROR_M if error_m is None else error_m, monotonic_ns)

    def cover(self, point: Point) -> bool:
        """Whether a point lies in one of the circles, wherever the probe is: a rounded one may."""
        return any(zone.covers(point) for zone in self._hidden)


# ---------------------------------------------------------------------------------------------------------------------
# What of a fix may leave the probe: the only way from a fix to a record. Pure.


Mode = Literal["coarse", "full"]
"""``off`` is not among them: then no receiver is asked."""

FIX_WORDS = {2: "2d", 3: "3d"}


class Privacy:
    """``grid_deg``: of coarse positions. One for a probe's whole life, since zones remember on which side the probe is."""

    def __init__(self, mode: Mode, grid_deg: float, zones: Zones) -> None:
        self._mode, self._grid_deg, self._zones = mode, grid_deg, zones

    @property
    def hiding(self) -> bool:
        return self._zones.inside

    def record(self, fix: Fix) -> Record | None:
        """The position record of a fix, None when it may not be reported. Call it with every fix, in order."""
        tpv = fix.tpv
        fields: dict[str, Value | None] = {
            "fix": FIX_WORDS.get(tpv.mode, "none"),
            "satellites_used": fix.satellites_used,
            "satellites_seen": fix.satellites_seen,
            "hdop": fix.hdop,
            "fix_age_ms": fix.age_ms,
        }
        if fix.found and tpv.latitude_deg is not None and tpv.longitude_deg is not None:
            point = Point(tpv.latitude_deg, tpv.longitude_deg)
            self._zones.see(point, tpv.error_m, fix.monotonic_ns)
            shown = point if self._mode == "full" else rounded(point, self._grid_deg)
            if self._zones.cover(shown):
                return None
            fields |= {"latitude_deg": shown.latitude_deg, "longitude_deg": shown.longitude_deg}
            if self._mode == "full":
                fields |= {
                    "altitude_m": tpv.altitude_m,
                    "speed_m_per_s": tpv.speed_m_per_s,
                    "track_deg": tpv.track_deg,
                    "horizontal_error_m": tpv.error_m,
                }
            else:
                fields["horizontal_error_m"] = max(tpv.error_m or 0.0, self._grid_deg * METRES_A_DEGREE)
        if self._zones.inside:
            return None
        return Record.make("position", {"mode": self._mode}, fields, fix.monotonic_ns)


def rounded(point: Point, grid_deg: float) -> Point:
    """The nearest point of the grid whose lines lie ``grid_deg`` apart, both ways."""
    return Point(
        max(-90.0, min(90.0, round(round(point.latitude_deg / grid_deg) * grid_deg, 7))),
        max(-180.0, min(180.0, round(round(point.longitude_deg / grid_deg) * grid_deg, 7))),
    )
