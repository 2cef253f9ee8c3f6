"""Moving or not by the speed of position records."""

from __future__ import annotations

from tandem.mobility.fused_settings import FusedSettings
from tandem.schema.record import Record

KM_H = 3.6


class SpeedJudge:
    """Hysteresis in time: so long above the threshold is moving, so long not above it is standing."""

    def __init__(self, settings: FusedSettings) -> None:
        self._settings = settings
        self._valid_ns = round(settings.speed_valid_s * 1e9)
        self._start_ns, self._stop_ns = round(settings.speed_start_s * 1e9), round(settings.speed_stop_s * 1e9)
        self._last_ns: int | None = None
        self._fast = False
        self._since_ns = 0

    def valid_until_ns(self) -> int | None:
        """Until when the last good fix decides; None when there was none."""
        return None if self._last_ns is None else self._last_ns + self._valid_ns

    def feed(self, record: Record) -> bool | None:
        """True: moving for long enough; False: standing for long enough; None: neither, or no good fix."""
        speed = self._speed_km_h(record)
        now = record.monotonic_ns
        if speed is None or (self._last_ns is not None and now <= self._last_ns):
            return None
        fast = speed > self._settings.speed_km_h
        if self._last_ns is None or now - self._last_ns > self._valid_ns or fast != self._fast:
            self._fast, self._since_ns = fast, now
        self._last_ns = now
        held_ns = now - self._since_ns
        if held_ns < (self._start_ns if fast else self._stop_ns):
            return None
        return fast

    def _speed_km_h(self, record: Record) -> float | None:
        fields = record.fields
        speed, age, error = (fields.get(k) for k in ("speed_m_per_s", "fix_age_ms", "horizontal_error_m"))
        if fields.get("fix") not in ("2d", "3d") or not isinstance(speed, (int, float)):
            return None
        if isinstance(age, (int, float)) and age > self._settings.fix_age_s * 1000:
            return None
        if isinstance(error, (int, float)) and error > self._settings.horizontal_error_m:
            return None
        return float(speed) * KM_H
