"""The position's receiver, by gpsd: a gpsd of our own where no system service has one, what leaves the probe, the thread that reads."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandem.position.reports import WATCH, Broken, Fix, Fixes, Report, Sky, Tpv, read
from tandem.position.zones import FIX_WORDS, Privacy
from tandem.schema.record import Record

log = logging.getLogger(__name__)


# ---------------------------------------------------------------------------------------------------------------------
# A gpsd of the collector's own, for a receiver that no system service serves: a child, started again when it dies.


Locate = Callable[[], str | None]
"""The receiver's device now, None while it is not there. A modem's NMEA port changes its name when the modem renumbers."""

FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S, GOOD_S = 1.0, 30.0, 60.0
_END_S = 3.0


class GpsdMissingError(RuntimeError):
    """There is no gpsd on this machine; one line with a hint."""


def program() -> str:
    """The program gpsd: what TANDEM_GPSD names, else on PATH or in sbin. GpsdMissingError when there is none."""
    named = os.environ.get("TANDEM_GPSD", "gpsd")
    found = shutil.which(named, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise GpsdMissingError(f"the program {named} is missing; hint: install the package gpsd")
    return found


def command(gpsd: str, port: int, device: str) -> list[str]:
    """``-N``: no daemon; ``-n``: read the device before anybody asks; ``-D 0``: no chatter; it listens on the loopback only (no -G).

    No control socket (``-F``): nothing but this collector says which device it reads. setpriv ends it with the thread that
    started it, also when the collector is killed.
    """
    setpriv = shutil.which("setpriv")
    ended_with_us = [] if setpriv is None else [setpriv, "--pdeathsig", "TERM", "--"]
    return [*ended_with_us, gpsd, "-N", "-n", "-D", "0", "-S", str(port), device]


class Gpsd:
    """Owned by one thread: ``look`` about once a second, ``stop`` at the end."""

    def __init__(self, locate: Locate) -> None:
        self._gpsd, self._locate = program(), locate
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._device: tuple[str, object] | None = None
        self._started_s = self._not_before_s = 0.0
        self._back_off_s = FIRST_BACK_OFF_S
        self._missing = False

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def look(self) -> tuple[str, int] | None:
        """Where it listens, after starting or ending it as the device demands; None while there is none."""
        device = self._found()
        if self._process is not None and (status := self._process.poll()) is not None:
            self._ended(status)
        if self._process is not None and device != self._device:
            self.stop()  # unplugged, or another device under the same name
        if device is None:
            if not self._missing:
                log.warning("position: the receiver is not there; hint: plug it in")
            self._missing = True
            return None
        self._missing = False
        if self._process is None:
            if time.monotonic() < self._not_before_s:
                return None
            self._start(device)
            return None  # at the next look it listens
        return "127.0.0.1", self._port

    def stop(self) -> None:
        process, self._process, self._device = self._process, None, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _found(self) -> tuple[str, object] | None:
        path = self._locate()
        try:
            there = None if path is None else Path(path).stat()
        except OSError:
            return None
        return None if path is None or there is None else (path, (there.st_dev, there.st_ino, there.st_rdev))

    def _start(self, device: tuple[str, object]) -> None:
        self._port = _free_port()
        argv = command(self._gpsd, self._port, device[0])
        # What it says may quote what it reads, which holds positions: it goes nowhere. A session of its own: Ctrl-C is ours.
        self._process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._device, self._started_s = device, time.monotonic()

    def _ended(self, status: int) -> None:
        good = time.monotonic() - self._started_s > GOOD_S
        self._back_off_s = FIRST_BACK_OFF_S if good else min(2 * self._back_off_s, LONGEST_BACK_OFF_S)
        self._not_before_s = time.monotonic() + self._back_off_s
        device = self._device[0] if self._device is not None else ""
        why = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        log.warning(
            "position: gpsd for %s ended with %s; again in %.0f s; hint: see what it says: gpsd -N -n -D 2 %s",
            device, why, self._back_off_s, device,
        )  # fmt: skip
        self._process = self._device = None


def _free_port() -> int:
    """A port of the loopback that nobody has now. Should another program take it first, gpsd ends and is started anew."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


# ---------------------------------------------------------------------------------------------------------------------
# From reports to what leaves the probe: position records, and events when a fix was found or lost. Pure; time is an
# argument.


@dataclass(frozen=True, slots=True)
class State:
    """For people, on the probe: never where, only whether.

    ``state``: ``no_gpsd``, ``silent`` (no report), ``searching``, ``fix`` or ``private`` (in a home zone, or not known to be outside).
    """

    state: str
    fix: str | None = None
    satellites_used: int | None = None
    satellites_seen: int | None = None


class Observer:
    """``heard`` with each report, ``tick`` a few times a second; both return records. ``lost_after_s``: without a fix for so long
    it is lost. ``speed``: called with the speed of every fix that has one, as a position record without a place, for use on the probe
    alone: movement is judged by it in coarse mode too, whose records have none. Not in a home zone, where what the receiver does
    is nobody's business: a stop that was judged by it would tell when somebody came home.
    """

    def __init__(
        self,
        privacy: Privacy,
        utc_ns: Callable[[int], int | None],
        lost_after_s: float,
        speed: Callable[[Record], None] | None = None,
    ) -> None:
        self._privacy, self._speed = privacy, speed
        self._patience_ns = int(lost_after_s * 1e9)
        self._fixes = Fixes(utc_ns, lost_after_s)
        self._found_ns: int | None = None
        self._heard_ns: int | None = None
        self._last: Fix | None = None
        self._reported: bool | None = None
        self._reported_ns: int | None = None

    def heard(self, report: Report, now_ns: int) -> list[Record]:
        """One report, arrived at ``now_ns``."""
        if isinstance(report, Sky):
            self._fixes.sky(report, now_ns)
        if not isinstance(report, Tpv):
            return []
        self._heard_ns = now_ns
        return self._take(self._fixes.tpv(report, now_ns), now_ns)

    def tick(self, now_ns: int) -> list[Record]:
        return self._take(self._fixes.tick(now_ns), now_ns)

    def state(self, now_ns: int, *, connected: bool) -> State:
        if not connected:
            return State("no_gpsd")
        if self._heard_ns is None or now_ns - self._heard_ns > self._patience_ns:
            return State("silent")
        last = self._last
        used, seen = (None, None) if last is None else (last.satellites_used, last.satellites_seen)
        if not self._has_fix(now_ns) or last is None:
            return State("searching", None, used, seen)
        return State("private" if self._privacy.hiding else "fix", FIX_WORDS.get(last.tpv.mode), used, seen)

    def _take(self, fix: Fix | None, now_ns: int) -> list[Record]:
        records: list[Record] = []
        if fix is not None:
            self._last = fix
            if fix.found:
                self._found_ns = now_ns
            record = self._privacy.record(fix)
            if self._speed is not None and fix.found and fix.tpv.speed_m_per_s is not None and not self._privacy.hiding:
                self._speed(_speed_record(fix))
            if record is not None:
                records.append(record)
        return [*self._event(now_ns), *records]

    def _has_fix(self, now_ns: int) -> bool:
        return self._found_ns is not None and now_ns - self._found_ns <= self._patience_ns

    def _event(self, now_ns: int) -> list[Record]:
        """An event when the outcome changed; none in a home zone, where it would tell when somebody went indoors."""
        found = self._has_fix(now_ns)
        if self._privacy.hiding or found == self._reported or (not found and self._reported is None):
            return []
        took_ms = None if self._reported_ns is None else (now_ns - self._reported_ns) / 1e6
        self._reported, self._reported_ns = found, now_ns
        detail = self._detail(found, now_ns)
        kind = "position_fix" if found else "position_lost"
        return [Record.make("event", {"kind": kind}, {"took_ms": took_ms, "detail": detail}, now_ns)]

    def _detail(self, found: bool, now_ns: int) -> str:
        last = self._last
        if not found:
            silent = self._heard_ns is None or now_ns - self._heard_ns > self._patience_ns
            return "the receiver is silent" if silent else "the receiver finds no position"
        words = "" if last is None else FIX_WORDS.get(last.tpv.mode, "")
        used = None if last is None else last.satellites_used
        return words if used is None else f"{words}, {used} satellites"


def _speed_record(fix: Fix) -> Record:
    """What judges movement needs to know of a fix. Never to be sent."""
    fields = {
        "fix": FIX_WORDS.get(fix.tpv.mode),
        "speed_m_per_s": fix.tpv.speed_m_per_s,
        "horizontal_error_m": fix.tpv.error_m,
        "fix_age_ms": fix.age_ms,
    }
    return Record.make("position", {}, fields, fix.monotonic_ns)


# ---------------------------------------------------------------------------------------------------------------------
# gpsd's lines.


LONGEST_LINE = 32_768
"""Bytes. gpsd's own limit for a response is 10,240 (gpsd 3.22 and 3.25, GPS_JSON_RESPONSE_MAX)."""


class Lines:
    """Fed with what a socket gives; a longer line is dropped whole, up to its end, and counted in ``dropped``."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._skipping = False
        self.dropped = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that ``piece`` completes, without their ends."""
        found: list[bytes] = []
        *ended, rest = piece.split(b"\n")
        for end in ended:
            self._rest += end
            if self._skipping or len(self._rest) > self._longest:
                self.dropped += not self._skipping
                self._skipping = False
            elif line := bytes(self._rest).strip():
                found.append(line)
            self._rest.clear()
        if not self._skipping:
            self._rest += rest
            if len(self._rest) > self._longest:
                self.dropped += 1
                self._skipping = True
        if self._skipping:
            self._rest.clear()
        return found


# ---------------------------------------------------------------------------------------------------------------------
# The thread that asks gpsd and hands records on.


SILENT_S = 20.0
"""Nothing heard on a connection for so long: it is made anew."""

_TICK_S, _CONNECT_S = 0.25, 2.0


class RunningGpsd:
    """A gpsd that somebody else runs; asked as ``Gpsd`` is."""

    def __init__(self, host: str, port: int) -> None:
        self._where = (host, port)

    def look(self) -> tuple[str, int] | None:
        return self._where

    def stop(self) -> None:
        """It is not ours to end."""


class Receiver:
    """``records`` gets what ``observer`` makes, ``state`` what people may see, ``heard`` every report with the CLOCK_MONOTONIC of its
    arrival (whoever takes it is interested in the time alone), all from this thread. ``start`` once, ``stop`` once. ``observer`` None:
    nobody wants to know where the probe is.

    A lost connection is made again after 1 s, 2 s … 30 s; the log tells the first of a row.
    """

    def __init__(
        self,
        source: Gpsd | RunningGpsd,
        observer: Observer | None,
        records: Callable[[list[Record]], None],
        state: Callable[[State], None] = lambda _state: None,
        heard: Callable[[Report, int], None] = lambda _report, _arrived_ns: None,
    ) -> None:
        self._source, self._observer, self._records, self._state = source, observer, records, state
        self._heard = heard
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._stopping = False
        self._socket: socket.socket | None = None
        self._where: tuple[str, int] | None = None
        self._lines = Lines()
        self._heard_s = self._not_before_s = self._looked_s = 0.0
        self._back_off_s = FIRST_BACK_OFF_S
        self._trouble: str | None = None
        self.broken = 0
        """Lines that were no reports."""
        self._thread = threading.Thread(target=self._run, name="position", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread, the connection, and a gpsd of our own; TimeoutError when that took longer. Twice is fine."""
        if self._wake_fd < 0:
            return
        self._stopping = True
        os.eventfd_write(self._wake_fd, 1)
        if self._thread.ident is not None:
            self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the position receiver is still busy after {timeout} s")
        os.close(self._wake_fd)
        self._wake_fd = -1

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._look()
                self._wait()
                now_ns = time.monotonic_ns()
                if self._observer is not None:
                    self._give(self._observer.tick(now_ns))
                    self._state(self._observer.state(now_ns, connected=self._socket is not None))
        finally:
            self._disconnect()
            self._source.stop()

    def _look(self) -> None:
        """Once a second: is gpsd where it was, and are we connected?"""
        now_s = time.monotonic()
        if now_s - self._looked_s < 1.0:
            return
        self._looked_s = now_s
        where = self._source.look()
        if self._socket is not None and where != self._where:
            self._disconnect()
            self._not_before_s = 0.0
        if self._socket is not None and now_s - self._heard_s > SILENT_S:
            self._lost(f"says nothing for {SILENT_S:g} s")
        if self._socket is None and where is not None and now_s >= self._not_before_s:
            self._connect(where)

    def _connect(self, where: tuple[str, int]) -> None:
        self._where = where
        try:
            self._socket = socket.create_connection(where, _CONNECT_S)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._socket.sendall(WATCH)
            self._socket.setblocking(False)
        except OSError as error:
            self._lost(error.strerror or str(error) or "no answer")
            return
        self._lines = Lines()
        self._heard_s = time.monotonic()

    def _wait(self) -> None:
        """Until something comes, a quarter of a second passes, or ``stop``."""
        watched = [self._wake_fd] if self._socket is None else [self._wake_fd, self._socket.fileno()]
        ready, _, _ = select.select(watched, [], [], _TICK_S)
        if self._socket is None or self._socket.fileno() not in ready:
            return
        try:
            piece = self._socket.recv(65536)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error.strerror or str(error))
            return
        if not piece:
            self._lost("closed the connection")
            return
        now_ns = time.monotonic_ns()
        self._heard_s = now_ns / 1e9
        for line in self._lines.feed(piece):
            self._read(line, now_ns)

    def _read(self, line: bytes, now_ns: int) -> None:
        report = read(line)
        if isinstance(report, Broken):
            self.broken += 1
            if self.broken == 1:
                log.warning("position: gpsd sent what cannot be used (%s); further lines are counted only", report.why)
            return
        self._trouble, self._back_off_s = None, FIRST_BACK_OFF_S
        if report is not None:
            self._heard(report, now_ns)
            if self._observer is not None:
                self._give(self._observer.heard(report, now_ns))

    def _give(self, records: list[Record]) -> None:
        if records:
            try:
                self._records(records)
            except Exception:
                # Whatever takes them, the receiver goes on.
                log.exception("position records could not be handed over")

    def _lost(self, why: str) -> None:
        self._disconnect()
        host, port = self._where or ("?", 0)
        if why != self._trouble:
            log.warning("position: gpsd at %s:%d: %s", host, port, why)
        self._trouble = why
        self._not_before_s = time.monotonic() + self._back_off_s
        self._back_off_s = min(2 * self._back_off_s, LONGEST_BACK_OFF_S)

    def _disconnect(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None
