"""What of a fix may leave the probe: the only way from a fix to a record. Pure."""

from __future__ import annotations

from typing import Literal

from tandem.position.fixes import Fix
from tandem.position.sphere import METRES_A_DEGREE, Point
from tandem.position.zones import Zones
from tandem.schema.record import Record, Value

Mode = Literal["coarse", "full"]
"""``off`` is not among them: then no receiver is asked."""

FIX_WORDS = {2: "2d", 3: "3d"}


class Privacy:
    """``grid_deg``: of coarse positions. One for a probe's whole life, since zones remember on which side the probe is."""

    def __init__(self, mode: Mode, grid_deg: float, zones: Zones) -> None:
        self._mode, self._grid_deg, self._zones = mode, grid_deg, zones

    @property
    def hiding(self) -> bool:
        """Whether nothing may be told now."""
        return self._zones.inside

    def record(self, fix: Fix) -> Record | None:
        """The position record of a fix, None when it may not be told. Call it with every fix, in order."""
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
            told = point if self._mode == "full" else rounded(point, self._grid_deg)
            if self._zones.cover(told):
                return None
            fields |= {"latitude_deg": told.latitude_deg, "longitude_deg": told.longitude_deg}
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
