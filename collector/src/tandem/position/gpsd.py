"""A gpsd of the collector's own, for a receiver that no system service serves: a child, started again when it dies."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

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
        """Of the running one."""
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
        """End it. Twice is fine."""
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
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
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
