"""Reports and tracks for the tests of position, and distances on the real ellipsoid, computed in another way than the product does."""

import math
from typing import Any

from tandem.position.reports import Tpv

EPOCH_UTC_NS = 1_790_000_000 * 10**9
"""UTC at CLOCK_MONOTONIC 0 in these tests."""


def utc_ns(monotonic_ns: int) -> int:
    return EPOCH_UTC_NS + monotonic_ns


def tpv(latitude: float, longitude: float, at_ns: int, age_ns: int = 120_000_000, **more: Any) -> Tpv:
    """A 3d fix that arrives at ``at_ns``."""
    values: dict[str, Any] = {
        "mode": 3, "device": "/dev/ttyACM0", "time_utc_ns": utc_ns(at_ns) - age_ns, "latitude_deg": latitude,
        "longitude_deg": longitude, "altitude_m": 31.0, "speed_m_per_s": 9.5, "track_deg": 123.0, "error_m": 4.0,
    }  # fmt: skip
    return Tpv(**{**values, **more})


def metres(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The chord between two points on WGS 84's ellipsoid: never longer than the way along the ground."""

    def place(point: tuple[float, float]) -> tuple[float, float, float]:
        major, flattening = 6_378_137.0, 1 / 298.257223563
        squared = flattening * (2 - flattening)
        phi, lam = map(math.radians, point)
        normal = major / math.sqrt(1 - squared * math.sin(phi) ** 2)
        ring = normal * math.cos(phi)
        return ring * math.cos(lam), ring * math.sin(lam), normal * (1 - squared) * math.sin(phi)

    return math.dist(place(a), place(b))


def between(a: tuple[float, float], b: tuple[float, float], share: float) -> tuple[float, float]:
    """A point on the straight line that a map draws."""
    east = (b[1] - a[1] + 540) % 360 - 180
    return a[0] + share * (b[0] - a[0]), (a[1] + share * east + 540) % 360 - 180
