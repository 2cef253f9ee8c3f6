"""What one source says of the clock at one instant, reading the two clocks as one, and the boots that there were."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

SOURCES = ("auto", "chrony", "kernel", "gpsd", "system")
"""``[clock] source``. ``auto``: chrony where it answers, else the kernel's word (systemd-timesyncd, ntpd), else gpsd's; where none of
them vouches for the time, records are held: ``system`` must be asked for, since it trusts whatever the clock shows."""

PLAUSIBLE_UTC_NS = 1_735_689_600 * 10**9
"""2025-01-01. An earlier time is nobody's: a clock that was never set, or a receiver whose week counter has wrapped (1024 weeks)."""

WORST_ERROR_NS = 1_000_000_000
"""A source that owns to more than a second of error does not vouch for the time."""


@dataclass(frozen=True, slots=True)
class Reading:
    """``offset_ns``: UTC less CLOCK_MONOTONIC, as best known at ``monotonic_ns``. ``error_ns``: how far off it may be; None: nobody
    says (``system``). ``slewing``: CLOCK_MONOTONIC is being led to the time, up to a tenth faster or slower. ``details``: fields of
    the ``clock`` record that this source can tell."""

    source: str
    monotonic_ns: int
    offset_ns: int
    error_ns: int | None
    slewing: bool = False
    details: dict[str, float | int | str] = field(default_factory=dict)


def system_offset_ns() -> int:
    """CLOCK_REALTIME less CLOCK_MONOTONIC. Slewing moves both, so it changes by steps only; the narrowest of three looks is taken, since
    a look may be interrupted between the two."""
    looks = []
    for _ in range(3):
        before = time.monotonic_ns()
        utc = time.time_ns()
        after = time.monotonic_ns()
        looks.append((after - before, utc - (before + after) // 2))
    return min(looks)[1]


def system_reading(monotonic_ns: int, offset_ns: int) -> Reading | None:
    """The clock as it stands, when it shows a time that can be."""
    if monotonic_ns + offset_ns < PLAUSIBLE_UTC_NS:
        return None
    return Reading("system", monotonic_ns, offset_ns, None)


# ---------------------------------------------------------------------------------------------------------------------
# ``spool/boots.json``: what is known of the clock in this boot and in earlier ones, in their order.


FORMAT = "tandem-boots/2"
BOOTS = 50
"""Remembered at most: records that are older went long ago."""

DRIFT = 1e-4
"""How fast a quartz that nobody disciplines may leave the time: 100 ppm; a Raspberry Pi's is within 50."""

FAST_SLEW = 0.1
"""CLOCK_MONOTONIC runs at most so much too fast or slow while chronyd corrects it (``maxslewrate``, 83,333 ppm)."""


class BootsError(ValueError):
    """The bytes are no such file."""


@dataclass(slots=True)
class Epoch:
    """UTC = CLOCK_MONOTONIC + ``offset_ns`` from ``from_ns`` on, as ``source`` vouched for it from ``first_ns`` to ``until_ns``
    (CLOCK_MONOTONIC), within ``error_ns`` (None: nobody said). ``slewed``: the clock was being led to the time. ``used``: records went
    out with it, so it changes no more. ``doubted``: the server's clock did not agree with it."""

    from_ns: int
    first_ns: int
    until_ns: int
    offset_ns: int
    error_ns: int | None
    source: str
    slewed: bool = False
    used: bool = False
    doubted: bool = False

    def error_at(self, monotonic_ns: int) -> int | None:
        """How far off a time by it may be."""
        if self.error_ns is None:
            return None
        away_ns = max(0, self.first_ns - monotonic_ns, monotonic_ns - self.until_ns)
        return self.error_ns + int(away_ns * DRIFT)


@dataclass(slots=True)
class Boot:
    """``first_seq``: the first number that the spool gave out in it; ``seen_ns``: CLOCK_MONOTONIC when it was last seen alive;
    ``system_offset_ns``: what the system's clock made of it then, right or wrong."""

    id: str
    first_seq: int | None = None
    seen_ns: int = 0
    system_offset_ns: int | None = None
    epochs: list[Epoch] = field(default_factory=list)

    @property
    def used(self) -> bool:
        """Whether records went out by its clock, which the server's then agreed with."""
        return any(epoch.used for epoch in self.epochs)

    def epoch(self, monotonic_ns: int) -> Epoch | None:
        """The one that holds for an instant; the first for all before it."""
        held = [epoch for epoch in self.epochs if epoch.from_ns <= monotonic_ns]
        return held[-1] if held else (self.epochs[0] if self.epochs else None)


def write(boots: list[Boot]) -> bytes:
    """The file's content."""
    return json.dumps({"format": FORMAT, "boots": [asdict(boot) for boot in boots[-BOOTS:]]}).encode()


def read(content: bytes) -> list[Boot]:
    """The inverse of ``write``; BootsError whatever is wrong with the bytes."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BootsError(f"no JSON: {error}") from error
    if not isinstance(document, dict):
        raise BootsError("no JSON object")
    try:
        if document.get("format") != FORMAT:
            raise BootsError(f"format is {document.get('format')!r}")
        boots = [_boot(entry) for entry in document["boots"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise BootsError(f"not as it was written: {error!r}") from error
    if len({boot.id for boot in boots}) != len(boots):
        raise BootsError("a boot is there twice")
    return boots


def _boot(row: dict[str, Any]) -> Boot:
    first_seq, system = row["first_seq"], row["system_offset_ns"]
    epochs = [_epoch(entry) for entry in row["epochs"]]
    if any(a.from_ns >= b.from_ns for a, b in pairwise(epochs)):
        raise BootsError("epochs out of order")
    return Boot(
        _text(row["id"]),
        None if first_seq is None else _whole(first_seq),
        _whole(row["seen_ns"]),
        None if system is None else _whole(system),
        epochs,
    )


def _epoch(row: dict[str, Any]) -> Epoch:
    from_ns, first_ns, until_ns, offset_ns = (
        _whole(row[name]) for name in ("from_ns", "first_ns", "until_ns", "offset_ns")
    )
    error, flags = row["error_ns"], [row[name] for name in ("slewed", "used", "doubted")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise BootsError(f"{flags!r} are not true or false")
    if first_ns > until_ns:
        raise BootsError("an epoch that ends before it begins")
    error_ns = None if error is None else _whole(error)
    if error_ns is not None and error_ns < 0:
        raise BootsError("an error below 0")
    return Epoch(from_ns, first_ns, until_ns, offset_ns, error_ns, _text(row["source"]), *flags)


def _whole(value: object) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise BootsError(f"{value!r} is no 64-bit number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 64:
        raise BootsError(f"{value!r} is no name")
    return value
