"""A receiver at a serial port, or in a modem: how it is started, its NMEA lines, and a thread that reads them."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

from tandem.position.observer import Observer, State
from tandem.position.reports import WATCH, Broken, Devices, Report, Version, read
from tandem.schema.record import Record

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


log = logging.getLogger(__name__)

PROTOCOL = 3
"""The major number of gpsd's protocol since 2010."""

SILENT_S = 20.0
"""Nothing heard on a connection for so long: it is made anew."""

FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S = 1.0, 30.0
_TICK_S, _CONNECT_S = 0.25, 2.0


class Source(Protocol):
    """Where gpsd is."""

    def look(self) -> tuple[str, int] | None:
        """Host and port now, None while there is none."""
        ...

    def stop(self) -> None:
        """End what was started."""
        ...


class RunningGpsd:
    """A gpsd that somebody else runs."""

    def __init__(self, host: str, port: int) -> None:
        self._where = (host, port)

    def look(self) -> tuple[str, int] | None:
        """Always the same."""
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
        source: Source,
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
        """Begin. Returns at once."""
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
        if report is None:
            return
        if isinstance(report, Broken):
            self.broken += 1
            if self.broken == 1:
                log.warning("position: gpsd sent what cannot be used (%s); further lines are counted only", report.why)
            return
        self._trouble, self._back_off_s = None, FIRST_BACK_OFF_S
        if isinstance(report, Version):
            if report.protocol not in (None, PROTOCOL):
                log.warning("position: gpsd %s speaks protocol %s, not %s", report.release, report.protocol, PROTOCOL)
        elif isinstance(report, Devices):
            log.info("position: gpsd reads %s", ", ".join(report.paths) or "no device")
        else:
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
