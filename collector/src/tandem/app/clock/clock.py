"""This boot's clock and those of earlier boots: what time a record gets, and whether it can be told yet. For any thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.app.clock.boots import Boot, BootsError, Epoch, read, write
from tandem.app.clock.following import follow
from tandem.app.clock.placing import UnplacedError, drop_contradicted, misplaced, place
from tandem.app.clock.reading import PLAUSIBLE_UTC_NS, Reading, system_offset_ns
from tandem.export.times import NotYet, Stamp
from tandem.spool.durable import write_durably

log = logging.getLogger(__name__)

STEP_NS = 50_000_000
"""CLOCK_REALTIME less CLOCK_MONOTONIC changes by steps only; this is more than the two looks can be apart."""

SAVE_NS = 600_000_000_000
"""``boots.json`` is written when an epoch begins or is used the first time, else so often: how long a boot lived bounds its neighbours."""

FRESH_NS = 300_000_000_000
"""So long after its last word a source counts as still vouching."""

KEPT_STEPS = 100


@dataclass(frozen=True, slots=True)
class Step:
    """The system's clock was set: at which instant of CLOCK_MONOTONIC, by how much."""

    monotonic_ns: int
    step_ns: int


def boot_id() -> str:
    """The kernel's UUID of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Clock:
    """The epochs of this boot, and those of earlier ones, remembered in ``file``. ``system_offset``: CLOCK_REALTIME less CLOCK_MONOTONIC.

    ``observe`` sees steps, ``take`` what a source says, ``save`` keeps both; the exporter asks the rest (``tandem.export.times``).
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
        self._boots = _read(file)
        known = [boot for boot in self._boots if boot.id == self.boot]
        if known and self._boots[-1] is known[0]:
            self._this = known[0]
        else:
            self._boots = [boot for boot in self._boots if boot.id != self.boot]
            self._this = Boot(self.boot)
            self._boots.append(self._this)
        self._offset_ns = system_offset()
        self._this.system_offset_ns = self._offset_ns
        self._reading: Reading | None = None
        self._saved_ns: int | None = None
        self._due = True
        self._sorted_out = False
        self.trouble: str | None = None
        """Why the clock is not synchronised, for people; whoever asks the sources says it."""
        self.steps: list[Step] = []
        """Of this life of the collector, the last ``KEPT_STEPS``."""
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
            self.steps = [*self.steps, Step(now, stepped)][-KEPT_STEPS:]
            return stepped

    def take(self, said: Reading) -> None:
        """A source vouches for the time. One that says what cannot be is not heard."""
        with self._lock:
            if said.monotonic_ns + said.offset_ns < PLAUSIBLE_UTC_NS:
                return
            before = (len(self._this.epochs), self._this.epochs[-1].offset_ns if self._this.epochs else None)
            follow(self._this, said, self.monotonic_ns())
            self._this.seen_ns = max(self._this.seen_ns, said.monotonic_ns)
            self._reading = said
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
        """Whether records of this boot have a time."""
        return bool(self._this.epochs)

    @property
    def vouched(self) -> bool:
        """Whether a source vouches for it now."""
        said = self._reading
        return said is not None and self.monotonic_ns() - said.monotonic_ns < FRESH_NS

    def utc_ns(self, monotonic_ns: int) -> int | None:
        """UTC of an instant of this boot; None while nobody has vouched for the clock."""
        epoch = self._this.epoch(monotonic_ns)
        return None if epoch is None else monotonic_ns + epoch.offset_ns

    def now_ns(self) -> int | None:
        """UTC now, by the boot's map and not by the system's clock."""
        return self.utc_ns(self.monotonic_ns())

    def shown_ns(self) -> int:
        """UTC now as best known, the system's clock where nobody vouches: for names of files, and for people."""
        now = self.now_ns()
        return self.monotonic_ns() + self._system_offset() if now is None else now

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
        """See ``tandem.export.times.Times``. From now on this time is the record's for good."""
        with self._lock:
            epoch = self._epoch(boot, monotonic_ns)
            if not epoch.used:
                epoch.used = self._due = True
            error_ns = epoch.error_at(monotonic_ns)
            return Stamp(monotonic_ns + epoch.offset_ns, None if error_ns is None else error_ns / 1e6)

    def _epoch(self, boot: str, monotonic_ns: int) -> Epoch:
        number = next((n for n, b in enumerate(self._boots) if b.id == boot), None)
        if number is None:
            raise UnplacedError(f"nothing is known of the clock of boot {boot}")
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
        """See ``tandem.export.times.Times``."""
        with self._lock:
            ranges: list[tuple[int, int | None]] = []
            for n, boot in enumerate(self._boots):
                if boot.first_seq is None or self.synchronised or boot.used:
                    continue  # in a later boot that has a time, all can be told or never will be
                after = [b.first_seq for b in self._boots[n + 1 :] if b.first_seq is not None]
                ranges.append((boot.first_seq, after[0] - 1 if after else None))
            return ranges

    def map_key(self) -> object:
        """See ``tandem.export.times.Times``."""
        with self._lock:
            last = self._this.epochs[-1] if self._this.epochs else None
            return None if last is None else (len(self._this.epochs), last.offset_ns)

    def doubted(self, yes: bool) -> None:
        """See ``tandem.export.times.Times``."""
        with self._lock:
            last = self._this.epochs[-1] if self._this.epochs else None
            if last is not None and not last.used and last.doubted != yes:
                last.doubted, self._due = yes, True
        if self._due:
            self.keep()

    def keep(self) -> None:
        """See ``tandem.export.times.Times``."""
        try:
            self.save()
        except OSError as error:
            log.error("%s: %s; mend: free disk space", self._file, error.strerror or error)

    def state(self, since_ns: int | None = None, until_ns: int | None = None) -> dict[str, Any]:
        """For a manifest and the status. ``since_ns``, ``until_ns``: the steps of this stretch only (CLOCK_MONOTONIC)."""
        with self._lock:
            now = self.monotonic_ns()
            last = self._this.epochs[-1] if self._this.epochs else None
            error_ns = None if last is None else last.error_at(now)
            steps = [
                {"monotonic_ns": step.monotonic_ns, "step_s": step.step_ns / 1e9}
                for step in self.steps
                if (since_ns is None or step.monotonic_ns >= since_ns)
                and (until_ns is None or step.monotonic_ns <= until_ns)
            ]
            return {
                "synchronised": last is not None,
                "vouched": self.vouched,
                "source": None if last is None else last.source,
                "offset_ns": None if last is None else last.offset_ns,
                "error_ms": None if error_ns is None else round(error_ns / 1e6, 3),
                "age_s": None if self._reading is None else round((now - self._reading.monotonic_ns) / 1e9, 1),
                "system_error_ms": None if last is None else round((self._offset_ns - last.offset_ns) / 1e6, 3),
                "steps": steps,
                "trouble": None if self.vouched else self.trouble,
            }

    @property
    def reading(self) -> Reading | None:
        """What was said last."""
        return self._reading


def _read(file: Path) -> list[Boot]:
    try:
        return read(file.read_bytes())
    except FileNotFoundError:
        return []
    except BootsError as error:
        # Kept for people: records of earlier boots that wait depend on it.
        aside = file.with_name(f"{file.name}.broken")
        log.error("%s is not as it was written (%s): kept as %s; it begins anew", file, error, aside.name)
        file.replace(aside)
        return []
