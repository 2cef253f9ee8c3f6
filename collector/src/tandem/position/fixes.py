"""From gpsd's reports to one fix a second. Pure; time is an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tandem.position.reports import Sky, Tpv

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
        """Whether there is a position."""
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
        """Satellites, as far as told."""
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

    def known(name: str) -> float | None:
        value: float | None = getattr(over, name)
        return value if value is not None else getattr(base, name)

    return Tpv(
        over.mode,
        over.device,
        base.time_utc_ns if over.time_utc_ns is None else over.time_utc_ns,
        over.latitude_deg,
        over.longitude_deg,
        known("altitude_m") if over.mode == 3 else None,
        known("speed_m_per_s") if over.mode >= 2 else None,
        known("track_deg") if over.mode >= 2 else None,
        known("error_m") if over.mode >= 2 else None,
    )
