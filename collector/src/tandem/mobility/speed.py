"""The speed of position records: moving or not, and a movement's low or high speed. Radio alone does not tell that
(docs/contributing/mobility.md): without good fixes there is none."""

from __future__ import annotations

from tandem.mobility.settings import FusedSettings
from tandem.schema.record import Record

KM_H = 3.6
BOUNDARY_KM_H = 10.0
"""What low and high mean: on foot, or by whatever has a motor."""

LEAST_S = 60.0
"""A shorter movement has no class."""


class SpeedJudge:
    """Hysteresis in time: so long above the threshold is moving, so long not above it is standing; far above it is moving at once."""

    def __init__(self, settings: FusedSettings) -> None:
        self._settings = settings
        self._surely_km_h = settings.speed_surely_km_h
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
        speed = good_speed_km_h(record, self._settings)
        now = record.monotonic_ns
        if speed is None or (self._last_ns is not None and now <= self._last_ns):
            return None
        fast = speed > self._settings.speed_km_h
        if self._last_ns is None or now - self._last_ns > self._valid_ns or fast != self._fast:
            self._fast, self._since_ns = fast, now
        self._last_ns = now
        if speed > self._surely_km_h:
            return True
        held_ns = now - self._since_ns
        if held_ns < (self._start_ns if fast else self._stop_ns):
            return None
        return fast


def good_speed_km_h(record: Record, settings: FusedSettings) -> float | None:
    """The speed of a position record whose fix is good (``FusedSettings``): 2d or 3d, not too old, not too vague; else None."""
    fields = record.fields
    speed, age, error = (fields.get(k) for k in ("speed_m_per_s", "fix_age_ms", "horizontal_error_m"))
    if record.measurement != "position" or fields.get("fix") not in ("2d", "3d") or not isinstance(speed, (int, float)):
        return None
    if isinstance(age, (int, float)) and age > settings.fix_age_s * 1000:
        return None
    if isinstance(error, (int, float)) and error > settings.horizontal_error_m:
        return None
    return float(speed) * KM_H


class SpeedClassifier:
    """``low`` or ``high`` by the mean over time of the speeds of good fixes; between fixes further apart than ``speed_valid_s`` nothing is
    known. Feed every position record; ``begin`` when movement starts, ``end`` when it stops."""

    def __init__(self, fused: FusedSettings | None = None) -> None:
        self._settings = fused or FusedSettings()
        self._valid_ns = round(self._settings.speed_valid_s * 1e9)
        self._begin_ns: int | None = None
        self._last: tuple[int, float] | None = None
        self._covered_ns, self._km_h_ns = 0, 0.0

    def begin(self, monotonic_ns: int) -> None:
        self._begin_ns, self._last = monotonic_ns, None
        self._covered_ns, self._km_h_ns = 0, 0.0

    def end(self, monotonic_ns: int) -> str | None:
        """The class of the movement that ended; None when nobody knows."""
        found = self.so_far(monotonic_ns)
        self._begin_ns = None
        return found

    def so_far(self, monotonic_ns: int) -> str | None:
        """The class of the movement until now; None when there is none, it is too short to tell, or less than half of it was covered."""
        if self._begin_ns is None or monotonic_ns - self._begin_ns < LEAST_S * 1e9:
            return None
        if not self._covered_ns or 2 * self._covered_ns < monotonic_ns - self._begin_ns:
            return None
        return "high" if self._km_h_ns / self._covered_ns > BOUNDARY_KM_H else "low"

    def feed(self, record: Record) -> None:
        """Other records and bad fixes are passed over."""
        if self._begin_ns is None:
            return
        speed, now = good_speed_km_h(record, self._settings), record.monotonic_ns
        if speed is None or (self._last is not None and now <= self._last[0]):
            return
        if self._last is not None and now - self._last[0] <= self._valid_ns:
            passed_ns = now - self._last[0]
            self._covered_ns += passed_ns
            self._km_h_ns += passed_ns * (self._last[1] + speed) / 2
        self._last = now, speed
