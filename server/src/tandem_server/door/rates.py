"""Token buckets in tables of bounded size: what may be taken of a thing a minute or a day, by probe or by address."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

_MOST = 10_000
_MINUTE_S = 60.0
_LONGEST_WAIT_S = 60.0
"""Told at the most: the next look costs one request."""


class Buckets:
    """One bucket a key, each filled with ``amount`` in ``period_s`` and holding that much. For several threads.

    At most ``most`` keys are kept, the least recently used goes first: whoever comes with more addresses than that is
    forgotten like anyone who was quiet. A bucket may go below nothing (``take`` after the fact); then ``wait_s`` says how long.
    """

    def __init__(
        self,
        amount: float,
        most: int = _MOST,
        now: Callable[[], float] = time.monotonic,
        period_s: float = _MINUTE_S,
    ) -> None:
        self._rate, self._period_s, self._most, self._now = amount / period_s, period_s, most, now
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, key: str, amount: float = 1.0, per_minute: float | None = None) -> None:
        """Take ``amount``, whatever is left then. ``per_minute``: this key's own."""
        with self._lock:
            level, at_s = self._level(key, per_minute)
            self._levels[key] = (level - amount, at_s)
            self._levels.move_to_end(key)
            while len(self._levels) > self._most:
                self._levels.popitem(last=False)

    def wait_s(self, key: str, amount: float = 1.0, per_minute: float | None = None) -> float:
        """Seconds until ``amount`` can be taken; 0: now."""
        with self._lock:
            lacking = amount - self._level(key, per_minute)[0]
        rate = self._rate if per_minute is None else per_minute / _MINUTE_S
        return min(_LONGEST_WAIT_S, lacking / rate) if lacking > 0 else 0.0

    def _level(self, key: str, per_minute: float | None) -> tuple[float, float]:
        rate, now_s = self._rate if per_minute is None else per_minute / _MINUTE_S, self._now()
        full = max(1.0, rate * self._period_s)
        level, at_s = self._levels.get(key, (full, now_s))
        return min(full, level + (now_s - at_s) * rate), now_s


@dataclass(frozen=True, slots=True)
class RateShare:
    """What a probe may ask of this process a minute; bytes as sent, lines of records. None: as everybody."""

    requests_per_minute: int | None = None
    lines_per_minute: int | None = None
    sent_bytes_per_minute: int | None = None


class ProbeRates:
    """The buckets of all probes. ``everybody`` has every bound; ``own``: those of single probes.

    What a request brings is counted when it has been received; the next one waits until that is paid. So no batch is refused after it
    was read, and one that is larger than a minute's worth still gets through.
    """

    def __init__(self, everybody: RateShare, own: Mapping[str, RateShare] | None = None) -> None:
        self._own = own or {}
        self._buckets = {field.name: Buckets(float(getattr(everybody, field.name))) for field in fields(RateShare)}

    def wait_s(self, probe: str) -> float:
        """Seconds until ``probe`` may ask again; 0: now."""
        return max(bucket.wait_s(probe, 1.0, self._rate(probe, name)) for name, bucket in self._buckets.items())

    def take(self, probe: str, *, requests: int = 0, lines: int = 0, sent_bytes: int = 0) -> None:
        """Count what ``probe`` has sent."""
        for name, amount in (("requests", requests), ("lines", lines), ("sent_bytes", sent_bytes)):
            if amount:
                name += "_per_minute"
                self._buckets[name].take(probe, amount, self._rate(probe, name))

    def _rate(self, probe: str, name: str) -> float | None:
        own = self._own.get(probe)
        return None if own is None else getattr(own, name)
