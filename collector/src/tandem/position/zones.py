"""Home zones: whether what the receiver says now may be told at all. Pure but for the drawn margins.

What leaves nothing is not the configured circle but a hidden one: twice its radius, its middle moved by up to nine tenths of the
radius in a direction that only this probe's key knows. So whoever gathers the ends of many tracks finds the hidden circle, and from
it that the home is somewhere within a configured radius of its middle, which is what was promised; and the configured circle lies
inside it whole. README.md says what else can be learned.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tandem.position.sphere import Point, distance_m, moved, nearest_m

MOST_OFFSET = 0.9
"""Of the configured radius. The tenth that is left covers the difference between ball and ellipsoid."""

MARGIN = 0.25
"""Each crossing's own margin is drawn from 0 to this part of the radius, so that one crossing does not show the edge."""

HYSTERESIS = 0.1
"""Leaving takes this part of the radius more than entering."""

DWELL_S = (10.0, 40.0)
"""And after leaving nothing is told for a drawn time within these."""

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
        """Whether a point to be told lies in the circle."""
        return distance_m(point, self._centre) <= self._edge_m

    def see(self, point: Point, error_m: float, monotonic_ns: int) -> None:
        """A fix, whether it is told or not."""
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
