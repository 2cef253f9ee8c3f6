"""The speed of position records: moving or not, and how fast on average."""

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
        speed = good_speed_km_h(record, self._settings)
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


class MeanSpeed:
    """The mean over time of the speeds of good fixes; between fixes further apart than ``speed_valid_s`` nothing is known."""

    def __init__(self, settings: FusedSettings) -> None:
        self._settings = settings
        self._valid_ns = round(settings.speed_valid_s * 1e9)
        self.begin()

    def begin(self) -> None:
        """Forget what was fed."""
        self._last: tuple[int, float] | None = None
        self._covered_ns, self._km_h_ns = 0, 0.0

    def feed(self, record: Record) -> None:
        """A position record; others and bad fixes are passed over."""
        speed = good_speed_km_h(record, self._settings)
        now = record.monotonic_ns
        if speed is None or (self._last is not None and now <= self._last[0]):
            return
        if self._last is not None and now - self._last[0] <= self._valid_ns:
            passed_ns = now - self._last[0]
            self._covered_ns += passed_ns
            self._km_h_ns += passed_ns * (self._last[1] + speed) / 2
        self._last = now, speed

    def km_h(self, of_ns: int) -> float | None:
        """The mean, when at least half of ``of_ns`` nanoseconds were covered; else None."""
        return self._km_h_ns / self._covered_ns if self._covered_ns and 2 * self._covered_ns >= of_ns else None


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
