"""The thread that asks who vouches for the time. It takes a datagram or a system call a look, and nothing waits for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from tandem.app.clock import chrony, kernel
from tandem.app.clock.clock import Clock
from tandem.app.clock.reading import Reading, system_offset_ns, system_reading
from tandem.app.clock.satellites import Satellites
from tandem.position.reports import Report

log = logging.getLogger(__name__)

OFTEN_S, SELDOM_S = 1.0, 8.0
"""Between looks: until somebody vouches and while the clock is being slewed; else."""

STEPPED_NS = 1_000_000
"""The system's clock was set while it was asked about: what was said is of before or after, nobody knows."""

RECEIVER_FRESH_NS = 5_000_000_000


class ClockWatch:
    """``source``: one of ``reading.SOURCES``. ``start`` looks once, so that a clock that is right gives times from the beginning."""

    def __init__(
        self,
        clock: Clock,
        source: str,
        daemon: chrony.Chrony | None = None,
        ask_kernel: Callable[[], kernel.KernelClock | None] = kernel.ask,
        offset_ns: Callable[[], int] = system_offset_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._clock, self._source = clock, source
        self._chrony = daemon if daemon is not None else chrony.Chrony()
        self._ask_kernel, self._offset_ns, self._monotonic_ns = ask_kernel, offset_ns, monotonic_ns
        self._satellites = Satellites()
        self._receiver: Reading | None = None
        self._why: list[str] = []
        self._told: str | None = ""
        self._refused = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock", daemon=True)

    def start(self) -> None:
        """Look, and go on looking."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        """End, and remember how long this boot lived. Twice is fine."""
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._save(now=True)

    def heard(self, report: Report, arrived_ns: int) -> None:
        """A report of gpsd's, from the position receiver's thread."""
        said = self._satellites.heard(report, arrived_ns, self._offset_ns())
        if said is not None:
            self._receiver = said

    def look(self) -> float:
        """Ask once; seconds until the next look."""
        offset_ns = self._offset_ns()
        self._why = []
        said = self._ask(offset_ns)
        if abs(self._offset_ns() - offset_ns) > STEPPED_NS:
            return OFTEN_S
        if said is not None:
            self._clock.take(said)
        self._tell(None if said is not None else "; ".join(self._why))
        self._save()
        return SELDOM_S if said is not None and not said.slewing and said.source != "system" else OFTEN_S

    def _ask(self, offset_ns: int) -> Reading | None:
        now_ns = self._monotonic_ns()
        if self._source == "system":
            said = system_reading(now_ns, offset_ns)
            if said is None:
                self._why.append("the system's clock shows a time before 2025: it was never set")
            return said
        if self._source in ("auto", "chrony") and (said := self._of_chrony(now_ns, offset_ns)) is not None:
            return said
        if self._source == "kernel" or (self._source == "auto" and not self._chrony.answered):
            said = self._of_kernel(now_ns, offset_ns)
            if said is not None:
                return said
        if self._source in ("auto", "gpsd"):
            heard = self._receiver
            if heard is not None and now_ns - heard.monotonic_ns < RECEIVER_FRESH_NS:
                return heard
            self._why.append("gpsd tells no time that can be believed")
        if self._source == "auto":
            self._why.append(
                'mend: install chrony (collector/README.md); on a bench or laptop [clock] source = "system"'
            )
        return None

    def _of_chrony(self, now_ns: int, offset_ns: int) -> Reading | None:
        told = self._chrony.ask()
        if told is None:
            self._why.append("no chronyd answers on port 323")
            return None
        said = chrony.reading(told, now_ns, offset_ns)
        if said is None:
            self._why.append("chronyd follows no server closely yet (chronyc sources)")
        return said

    def _of_kernel(self, now_ns: int, offset_ns: int) -> Reading | None:
        told = self._ask_kernel()
        said = None if told is None else kernel.reading(told, now_ns, offset_ns)
        if said is None:
            self._why.append("the kernel's clock is not disciplined (timedatectl)")
        return said

    def _tell(self, why: str | None) -> None:
        self._clock.trouble = None if why is None else f"the clock is not synchronised: {why}"
        if why == self._told:
            return
        if why is not None:
            log.warning("clock: not synchronised: %s", why)
        elif self._source == "system":
            log.warning("clock: trusted as it stands (source = system): nobody vouches for it")
        else:
            log.info("clock: synchronised")
        self._told = why

    def _save(self, *, now: bool = False) -> None:
        try:
            self._clock.save(now=now)
            self._refused = False
        except OSError as error:
            if not self._refused:
                log.error(
                    "what is known of the clock waits in memory: %s; mend: free disk space", error.strerror or error
                )
            self._refused = True

    def _run(self) -> None:
        wait_s = OFTEN_S
        while not self._end.wait(wait_s):
            try:
                wait_s = self.look()
            except Exception:
                # Records are made and kept whatever becomes of their time.
                log.exception("clock: a look failed; trying again")
                wait_s = SELDOM_S
