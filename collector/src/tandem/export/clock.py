"""What time a record gets: UTC from CLOCK_MONOTONIC by boot, what is known of its error, and how a step of the clock is followed."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from tandem.spool.durable import read_or_begin, write_durably

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


class NotYet(Exception):  # noqa: N818  no error: the record waits
    """The record has no time yet."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A record's time. ``error_ms``: how far off it may be, None where nobody says."""

    utc_ns: int
    error_ms: float | None


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
    return json.dumps({"format": FORMAT, "boots": [asdict(boot) for boot in boots[-BOOTS:]]}).encode()


def read(content: bytes) -> list[Boot]:
    """The inverse of ``write``; BootsError whatever is wrong with the bytes."""
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise BootsError(f"format is {document['format']!r}")
        boots = [_boot(entry) for entry in document["boots"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BootsError(f"not as it was written: {error!r}") from error
    if len({boot.id for boot in boots}) != len(boots):
        raise BootsError("a boot is there twice")
    return boots


def _boot(row: dict[str, Any]) -> Boot:
    epochs = [Epoch(**_values(Epoch, entry)) for entry in row["epochs"]]
    if any(a.from_ns >= b.from_ns for a, b in pairwise(epochs)):
        raise BootsError("epochs out of order")
    if any(epoch.first_ns > epoch.until_ns or (epoch.error_ns or 0) < 0 for epoch in epochs):
        raise BootsError("an epoch that ends before it begins, or an error below 0")
    return Boot(**_values(Boot, row), epochs=epochs)


_TYPES = {"str": (str,), "bool": (bool,), "int": (int,), "int | None": (int, type(None))}


def _values(kind: type[Boot] | type[Epoch], row: dict[str, Any]) -> dict[str, Any]:
    """By field, each of the field's type, numbers of 64 bits; BootsError."""
    found = {}
    for one in fields(kind):
        if one.name != "epochs":
            value = found[one.name] = row[one.name]
            if type(value) not in _TYPES[str(one.type)] or (type(value) is int and not -(2**63) <= value < 2**63):
                raise BootsError(f"{one.name} is {value!r}")
    return found


WIDEST_NS = 3_600_000_000_000
"""One hour either way: a boot that can be placed no better is not placed; its records go into quarantine with what is known."""

SLACK_NS = 60_000_000_000
"""So much may a boot seem to overlap its neighbours before its epochs are taken for wrong."""


def limits(boots: Sequence[Boot], number: int) -> tuple[int | None, int | None]:
    """Least and most offset (UTC less CLOCK_MONOTONIC) that ``boots[number]`` can have had; None: nothing known. Boots follow each
    other, so it began after the one before was last seen, and was over before the next one began."""
    least = most = None
    between_ns = 0
    for earlier in reversed(boots[:number]):
        if earlier.epochs:
            last = earlier.epochs[-1]
            least = earlier.seen_ns + last.offset_ns - (last.error_at(earlier.seen_ns) or 0) + between_ns
            break
        between_ns += earlier.seen_ns
    between_ns = boots[number].seen_ns
    for later in boots[number + 1 :]:
        if later.epochs:
            first = later.epochs[0]
            most = first.offset_ns + (first.error_at(0) or 0) - between_ns
            break
        between_ns += later.seen_ns
    return least, most


def place(boots: Sequence[Boot], number: int) -> Epoch:
    """The epoch of a boot without one; ValueError, one line with what is known, when its neighbours leave more than ``WIDEST_NS``."""
    boot = boots[number]
    least, most = limits(boots, number)
    if most is None:
        raise ValueError(f"no clock was ever synchronised in boot {boot.id}, nor since")
    if least is None:
        least = PLAUSIBLE_UTC_NS
    least = min(least, most)  # their errors overlap: there was hardly a moment between them
    # With a battery the system's clock was right; without one it stood at the last shutdown, which is the least that it can be.
    shown = boot.system_offset_ns
    offset_ns = shown if shown is not None and least <= shown <= most else (least + most) // 2
    error_ns = max(offset_ns - least, most - offset_ns)
    if error_ns > WIDEST_NS:
        raise ValueError(
            f"the clock was never synchronised in boot {boot.id}, which began between {utc_words(least)} and {utc_words(most)}"
        )
    return Epoch(0, 0, boot.seen_ns, offset_ns, error_ns, "neighbours")


def misplaced(boots: Sequence[Boot], number: int) -> bool:
    """Whether a boot's unused epochs contradict the order of boots: it would have ended after a later one began, or begun before an
    earlier one was over. Whoever vouched for its clock was wrong then. Boots by whose epochs records went out, and the last, are
    taken as right."""
    boot = boots[number]
    if not boot.epochs or boot.used:
        return False
    sure = [b if b.used or n == len(boots) - 1 else replace(b, epochs=[]) for n, b in enumerate(boots)]
    least, most = limits(sure, number)
    first, last = boot.epochs[0], boot.epochs[-1]
    too_late = most is not None and last.offset_ns - (last.error_ns or 0) > most + SLACK_NS
    too_early = least is not None and first.offset_ns + (first.error_ns or 0) < least - SLACK_NS
    return too_late or too_early


def drop_contradicted(boot: Boot) -> bool:
    """Drop epochs that nobody has used and that the server's clock did not agree with, or that are far from the used ones of their boot,
    with which it did; whether there were any."""
    used = [epoch.offset_ns for epoch in boot.epochs if epoch.used]

    def holds(epoch: Epoch) -> bool:
        near = not used or min(abs(epoch.offset_ns - offset_ns) for offset_ns in used) <= SLACK_NS
        return epoch.used or (near and not epoch.doubted)

    left = [epoch for epoch in boot.epochs if holds(epoch)]
    dropped, boot.epochs = len(left) < len(boot.epochs), left
    return dropped


def utc_words(utc_ns: int) -> str:
    """For people, to the second."""
    try:
        return datetime.fromtimestamp(utc_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{utc_ns} ns"


# ---------------------------------------------------------------------------------------------------------------------
# How a boot's epochs follow what a source says. Pure. CLOCK_MONOTONIC is never stepped, so one offset holds for a
# boot, except as far as it is slewed and its quartz drifts. What records went out with (``Epoch.used``) never
# changes: a record that has to be sent again goes out with the same time, and stays one point.


TOLERANCE_NS = 20_000_000
"""A difference up to this, or to the reading's error, is followed within an epoch and stated in its error."""

EPOCHS_AT_ONE_TOLERANCE = 32
"""After so many epochs of one boot the tolerance doubles: a clock that cannot be kept still costs exactness, which is stated, not disk."""

DISCIPLINED_DRIFT = 6e-4
"""A clock that is being disciplined may be led so much (the kernel's loop: 500 ppm) beside its quartz's drift."""

BETTER = 4
"""An epoch in use is followed by a better one when its error falls to this part."""

WORTH_NS = 50_000_000
"""No error below this is worth a new epoch."""


def follow(boot: Boot, said: Reading, now_ns: int) -> None:
    """Take ``said`` into the boot's epochs: confirm the last, mend it while it is unused, or begin a new one after ``now_ns``
    (CLOCK_MONOTONIC): what was made until now may have gone out."""
    start_ns = max(now_ns, said.monotonic_ns) + 1
    while boot.epochs and not boot.epochs[-1].used and not _both_right(boot.epochs[-1], said):
        # Nobody has seen it yet: what was wrong is as if it had never been said.
        start_ns = boot.epochs.pop().from_ns
    if not boot.epochs:
        boot.epochs.append(_epoch(0, said))
        return
    last = boot.epochs[-1]
    away_ns = abs(said.offset_ns - last.offset_ns)
    error_ns, known_ns = said.error_ns or 0, last.error_ns or 0
    slewed = said.slewing or last.slewed
    tolerance_ns = max(TOLERANCE_NS << (len(boot.epochs) // EPOCHS_AT_ONE_TOLERANCE), error_ns)
    reach_ns = int((said.monotonic_ns - last.first_ns) * (FAST_SLEW if slewed else DRIFT))
    better = last.used and known_ns > WORTH_NS and BETTER * (error_ns + away_ns) < known_ns
    if not last.used and error_ns + reach_ns < known_ns:
        improved = _epoch(last.from_ns, said)  # better than what was said, even for the epoch's very beginning
        improved.first_ns, improved.error_ns, improved.slewed = last.first_ns, error_ns + reach_ns, slewed
        boot.epochs[-1] = improved
    elif away_ns > tolerance_ns or better or (last.source == "system") != (said.source == "system"):
        boot.epochs.append(_epoch(start_ns, said))
    else:
        gap_ns = max(0, said.monotonic_ns - last.until_ns)
        last.until_ns = max(last.until_ns, said.monotonic_ns)
        last.source, last.slewed = said.source, slewed
        if said.error_ns is not None:
            last.error_ns = max(known_ns, error_ns + away_ns + int(gap_ns * DRIFT / 2))


def _both_right(last: Epoch, said: Reading) -> bool:
    """Whether the epoch and the reading can both be true, as far as the clock can have been led meanwhile."""
    gap_ns = max(0, said.monotonic_ns - last.until_ns)
    moved_ns = gap_ns * (FAST_SLEW if said.slewing or last.slewed else DISCIPLINED_DRIFT)
    return abs(said.offset_ns - last.offset_ns) <= (said.error_ns or 0) + (last.error_ns or 0) + moved_ns


def _epoch(from_ns: int, said: Reading) -> Epoch:
    return Epoch(
        from_ns, said.monotonic_ns, said.monotonic_ns, said.offset_ns, said.error_ns, said.source, said.slewing
    )


# ---------------------------------------------------------------------------------------------------------------------
# This boot's clock and those of earlier boots: what time a record gets, and whether it is known yet. For any
# thread.


log = logging.getLogger(__name__)

STEP_NS = 50_000_000
"""CLOCK_REALTIME less CLOCK_MONOTONIC changes by steps only; this is more than the two looks can be apart."""

SAVE_NS = 600_000_000_000
"""``boots.json`` is written when an epoch begins or is used the first time, else so often: how long a boot lived bounds its neighbours."""

FRESH_NS = 300_000_000_000
"""So long after its last word a source counts as still vouching."""

KEPT_STEPS = 100


def boot_id() -> str:
    """The kernel's UUID of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Clock:
    """The epochs of this boot, and those of earlier ones, remembered in ``file``. ``system_offset``: CLOCK_REALTIME less CLOCK_MONOTONIC.

    ``observe`` sees steps, ``take`` what a source says, ``save`` keeps both; the exporter asks the rest.
    """

    def __init__(
        self,
        file: Path,
        boot: str | None = None,
        system_offset: Callable[[], int] = system_offset_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.boot = boot if boot is not None else boot_id()
        self._file, self._system_offset, self.monotonic_ns = file, system_offset, monotonic_ns
        self._lock = threading.RLock()
        self._boots = read_or_begin(file, read, list[Boot])
        known = [boot for boot in self._boots if boot.id == self.boot]
        if known and self._boots[-1] is known[0]:
            self._this = known[0]
        else:
            self._boots = [boot for boot in self._boots if boot.id != self.boot]
            self._this = Boot(self.boot)
            self._boots.append(self._this)
        self._offset_ns = system_offset()
        self._this.system_offset_ns = self._offset_ns
        self.reading: Reading | None = None
        """What was said last."""
        self._saved_ns: int | None = None
        self._due = True
        self._refused = False
        self._sorted_out = False
        self.trouble: str | None = None
        """Why the clock is not synchronised, for people; whoever asks the sources says it."""
        self._steps: deque[tuple[int, int]] = deque(maxlen=KEPT_STEPS)
        """When the system's clock was set (CLOCK_MONOTONIC) and by how much, in this life of the collector."""
        self.stepped = 0
        """How many there were."""

    # --- in ------------------------------------------------------------------------------------------------------------

    def began(self, first_seq: int) -> None:
        """Numbers of this boot's records begin here, unless the boot has begun already."""
        with self._lock:
            if self._this.first_seq is None:
                self._this.first_seq, self._due = first_seq, True

    def observe(self) -> int | None:
        """Look at the clocks, about once a second: the step in ns when the system's clock was set, else None. No disk, no waiting."""
        with self._lock:
            offset, now = self._system_offset(), self.monotonic_ns()
            stepped = offset - self._offset_ns
            self._offset_ns = self._this.system_offset_ns = offset
            self._this.seen_ns = max(self._this.seen_ns, now)
            if abs(stepped) < STEP_NS:
                return None
            self.stepped += 1
            self._steps.append((now, stepped))
            return stepped

    def take(self, said: Reading) -> None:
        """A source vouches for the time. One that says what cannot be is not heard."""
        with self._lock:
            if said.monotonic_ns + said.offset_ns < PLAUSIBLE_UTC_NS:
                return
            before = (len(self._this.epochs), self._this.epochs[-1].offset_ns if self._this.epochs else None)
            follow(self._this, said, self.monotonic_ns())
            self._this.seen_ns = max(self._this.seen_ns, said.monotonic_ns)
            self.reading = said
            if before != (len(self._this.epochs), self._this.epochs[-1].offset_ns):
                self._due, self._sorted_out = True, False

    def save(self, *, now: bool = False) -> None:
        """Write what has to be remembered, if it is time (``now``: in any case). OSError when the disk takes nothing: call it again."""
        with self._lock:
            instant = self.monotonic_ns()
            if not (now or self._due or self._saved_ns is None or instant - self._saved_ns >= SAVE_NS):
                return
            self._this.seen_ns = max(self._this.seen_ns, instant)
            write_durably(self._file, write(self._boots))
            self._due, self._saved_ns = False, instant

    # --- out -----------------------------------------------------------------------------------------------------------

    @property
    def synchronised(self) -> bool:
        return bool(self._this.epochs)

    @property
    def vouched(self) -> bool:
        said = self.reading
        return said is not None and self.monotonic_ns() - said.monotonic_ns < FRESH_NS

    def utc_ns(self, monotonic_ns: int) -> int | None:
        """UTC of an instant of this boot; None while nobody has vouched for the clock."""
        epoch = self._this.epoch(monotonic_ns)
        return None if epoch is None else monotonic_ns + epoch.offset_ns

    def now_ns(self) -> int | None:
        """UTC now, by the boot's map and not by the system's clock."""
        return self.utc_ns(self.monotonic_ns())

    def age_s(self, boot: str, monotonic_ns: int) -> float | None:
        """How long ago an instant of any boot was; None while nobody can tell."""
        now = self.monotonic_ns()
        if boot == self.boot:
            return max(0.0, (now - monotonic_ns) / 1e9)
        with self._lock:
            known = [b for b in self._boots if b.id == boot and b.epochs]
            utc_now, epoch = self.utc_ns(now), known[0].epoch(monotonic_ns) if known else None
        return None if utc_now is None or epoch is None else max(0.0, (utc_now - monotonic_ns - epoch.offset_ns) / 1e9)

    def stamp(self, boot: str, monotonic_ns: int) -> Stamp:
        """The time of an instant, from now on the record's for good. NotYet: ask again later; ValueError: nobody will ever know."""
        with self._lock:
            epoch = self._epoch(boot, monotonic_ns)
            if not epoch.used:
                epoch.used = self._due = True
            error_ns = epoch.error_at(monotonic_ns)
            return Stamp(monotonic_ns + epoch.offset_ns, None if error_ns is None else error_ns / 1e6)

    def _epoch(self, boot: str, monotonic_ns: int) -> Epoch:
        number = next((n for n, b in enumerate(self._boots) if b.id == boot), None)
        if number is None:
            raise ValueError(f"nothing is known of the clock of boot {boot}")
        found = self._boots[number].epoch(monotonic_ns)
        if self._boots[number] is not self._this and (found is None or not found.used):
            if not self.synchronised:
                raise NotYet(f"boot {boot}")
            self._sort_out()
            if not self._boots[number].epochs:
                self._boots[number].epochs = [place(self._boots, number)]
                log.warning("clock: boot %s is placed between its neighbours: %s", boot, self._boots[number].epochs[0])
        found = self._boots[number].epoch(monotonic_ns)
        if found is None:
            raise NotYet(f"boot {boot}")
        return found

    def _sort_out(self) -> None:
        """Forget what contradicts the order of boots, now that this one has a time."""
        if self._sorted_out:
            return
        for boot in self._boots[:-1]:
            self._due = drop_contradicted(boot) or self._due
        wrong = [n for n in range(len(self._boots) - 1) if misplaced(self._boots, n)]
        for number in wrong:
            log.warning(
                "clock: what %s said in boot %s cannot be",
                self._boots[number].epochs[-1].source,
                self._boots[number].id,
            )
            self._boots[number].epochs, self._due = [], True
        self._sorted_out = True

    def held(self) -> list[tuple[int, int | None]]:
        """Numbers of records (first, last; None: no end) that have no time yet."""
        with self._lock:
            ranges: list[tuple[int, int | None]] = []
            for n, boot in enumerate(self._boots):
                if boot.first_seq is None or self.synchronised or boot.used:
                    continue  # in a later boot that has a time, all can be known or never will be
                after = [b.first_seq for b in self._boots[n + 1 :] if b.first_seq is not None]
                ranges.append((boot.first_seq, after[0] - 1 if after else None))
            return ranges

    def map_key(self) -> object:
        """Differs when this boot's map has changed."""
        with self._lock:
            last = self._this.epochs[-1] if self._this.epochs else None
            return None if last is None else (len(self._this.epochs), last.offset_ns)

    def doubted(self, yes: bool) -> None:
        """Whether the server's clock contradicts the map: what nobody has used by the next boot is then forgotten."""
        with self._lock:
            last = self._this.epochs[-1] if self._this.epochs else None
            if last is not None and not last.used and last.doubted != yes:
                last.doubted, self._due = yes, True
        if self._due:
            self.keep()

    def keep(self, *, now: bool = False) -> None:
        """Save, as far as the disk takes it; that it takes nothing is logged once."""
        try:
            self.save(now=now)
            self._refused = False
        except OSError as error:
            if not self._refused:
                why = error.strerror or error
                log.error("%s: %s; it waits in memory; hint: free disk space", self._file, why)
            self._refused = True

    def state(self, since_ns: int | None = None, until_ns: int | None = None) -> dict[str, Any]:
        """For a manifest and the status. ``since_ns``, ``until_ns``: the steps of this stretch only (CLOCK_MONOTONIC)."""
        with self._lock:
            now = self.monotonic_ns()
            last = self._this.epochs[-1] if self._this.epochs else None
            error_ns = None if last is None else last.error_at(now)
            steps = [
                {"monotonic_ns": at_ns, "step_s": step_ns / 1e9}
                for at_ns, step_ns in self._steps
                if (since_ns is None or at_ns >= since_ns) and (until_ns is None or at_ns <= until_ns)
            ]
            return {
                "synchronised": last is not None,
                "vouched": self.vouched,
                "source": None if last is None else last.source,
                "offset_ns": None if last is None else last.offset_ns,
                "error_ms": None if error_ns is None else round(error_ns / 1e6, 3),
                "age_s": None if self.reading is None else round((now - self.reading.monotonic_ns) / 1e9, 1),
                "system_error_ms": None if last is None else round((self._offset_ns - last.offset_ns) / 1e6, 3),
                "steps": steps,
                "trouble": None if self.vouched else self.trouble,
            }
