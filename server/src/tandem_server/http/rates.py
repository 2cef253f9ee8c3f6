"""What one probe or one address may take: token buckets in tables of bounded size, and shares of the server's disks."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

DAY_S = 86_400.0
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


class NoRoom(OSError):  # noqa: N818  (an answer, no accident)
    """The disk is full, or nearly. The message names the folder, for the log."""


class DaySpent(OSError):  # noqa: N818  (an answer, no accident)
    """The probe has stored what it may store a day. ``left_s``: until it should ask again."""

    def __init__(self, left_s: float) -> None:
        super().__init__(errno.EDQUOT, "the probe's share of a day's bytes is used up")
        self.left_s = left_s

    def __str__(self) -> str:
        return str(self.strerror)


class Reserve:
    """``least_bytes`` stay free on the file system of each of ``folders``; what of them is not there yet is its parent's."""

    def __init__(self, folders: Collection[Path], least_bytes: int) -> None:
        self._folders, self._least_bytes = folders, least_bytes

    def check(self, coming_bytes: int = 0) -> None:
        """NoRoom unless ``coming_bytes`` more leave enough free."""
        for folder in self._folders:
            there = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
            free = shutil.disk_usage(there).free
            if free - coming_bytes < self._least_bytes:
                why = f"{free} bytes are free, {self._least_bytes} are kept free, {coming_bytes} are to come"
                raise NoRoom(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {why}", str(folder))


class DiskShare:
    """Of manifests, and of results: ``bytes_per_day`` of a probe as they are stored, of which what it did not use comes back by and by.
    Safe to use from any thread."""

    def __init__(self, reserve: Reserve, bytes_per_day: int) -> None:
        self.reserve, self._days = reserve, Buckets(bytes_per_day, period_s=DAY_S)

    def check(self, probe: str) -> None:
        """Whether it may store something now: NoRoom, DaySpent."""
        self.reserve.check()
        if wait_s := self._days.wait_s(probe):
            raise DaySpent(wait_s)

    def charge(self, probe: str, stored_bytes: int) -> None:
        """It has stored so many."""
        self._days.take(probe, stored_bytes)
