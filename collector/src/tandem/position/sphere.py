"""Distances on the Earth taken as a ball: up to 0.6 % from those on WGS 84's ellipsoid. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    """The point ``metres`` from ``start`` in that direction."""
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
