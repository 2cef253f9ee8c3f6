"""From one release to another, and back when that one does not report healthy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandem_release.disk import ReleaseError
from tandem_release.health import lacks, made
from tandem_release.place import Place
from tandem_release.service import Service, Told

LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """In seconds: to wait for a measurement to end; in which the release must report healthy; for which it must then stay so."""

    wait_s: float
    within_s: float
    steady_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """``release``: which one runs now; ``lacked``: what the new one did, None when it is healthy; ``back_lacks``: what the old one
    lacks now that it is back."""

    release: str | None
    changed: bool
    seconds: float
    lacked: str | None = None
    back_lacks: str | None = None


class Switch:
    """``clock`` and ``pause``: of this machine, or of a test."""

    def __init__(
        self,
        place: Place,
        service: Service,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.place, self.service, self.limits = place, service, limits
        self.clock, self.pause = clock, pause

    def python(self, release: str) -> str:
        """What a collector of that release is run by."""
        return str(Path(self.place.releases.home / release / "bin/python3"))

    def to(self, release: str) -> Outcome:
        """The release with its staged files; ReleaseError before anything is touched."""
        self.place.releases.folder(release)
        if self.place.journal.exists():
            self.back()
        self.place.check(release)
        begun = self.clock()
        now = self.service.told()
        if self.place.is_as(release) and not now.stale and lacks(now, self.python(release), None) is None:
            return Outcome(release, False, 0.0)
        if not self.service.wait_idle(self.limits.wait_s):
            raise ReleaseError("held by a measurement; mend: come again, or tandem campaign stop", 1)
        before = self.place.releases.linked("current")
        self.place.keep(release)
        try:
            self.place.put(release)
            lacked = self.settles(release, now)
        except BaseException:
            self.back()
            raise
        if lacked is None:
            self.place.proven()
            return Outcome(release, True, self.clock() - begun)
        if before is None:
            # Nothing to go back to: it stays, so that it measures as soon as it can, and what it lacks is told.
            self.place.proven()
            return Outcome(release, True, self.clock() - begun, lacked)
        back_lacks = self.back(now)
        return Outcome(before, True, self.clock() - begun, lacked, back_lacks)

    def back(self, before: Told | None = None) -> str | None:
        """As before the switch under way; what the release lacks that stands again."""
        release = self.place.restore()
        if release is None:
            return None
        return self.settles(release, before)

    def settles(self, release: str, before: Told | None) -> str | None:
        """Started anew, and healthy in time and for long enough: None, or what it lacked at the end."""
        self.service.start_anew()
        deadline = self.clock() + self.limits.within_s
        since: float | None = None
        pid = records = 0
        while True:
            now = self.service.told()
            lacking = lacks(now, self.python(release), None if before is None else before.status)
            if lacking is not None or now.pid != pid or since is None:
                since, pid, records = (self.clock() if lacking is None else None), now.pid, made(now.status)
            # A hung one answers, too: the thread that makes records is another.
            elif made(now.status) <= records:
                lacking = "it makes no records"
            elif self.clock() - since >= self.limits.steady_s:
                return None
            if self.clock() >= deadline:
                return lacking or "it does not stay up"
            self.pause(LOOK_EVERY_S)
