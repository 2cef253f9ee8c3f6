"""Tells systemd what this process is at: sd_notify(3), a datagram to the socket that NOTIFY_SOCKET names. Without it, nothing."""

from __future__ import annotations

import os
import socket
import time


class Notify:
    """``watchdog_s``: at least so often ``alive`` must come (WatchdogSec= of the unit); None: nobody waits for it."""

    def __init__(self, address: str | None, watchdog_s: float | None = None) -> None:
        self._address, self._every_s = address, None if watchdog_s is None else watchdog_s / 3
        self._alive_s = 0.0

    @classmethod
    def of_environment(cls) -> Notify:
        """What systemd reported, taken out of the environment so that no child tells it too."""
        address = os.environ.pop("NOTIFY_SOCKET", None)
        microseconds, process = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
        mine = process in ("", str(os.getpid()))
        watched = microseconds.isdecimal() and int(microseconds) > 0 and mine
        return cls(address or None, int(microseconds) / 1e6 if watched else None)

    @property
    def every_s(self) -> float | None:
        """How often ``alive`` has to be called; None: it need not."""
        return None if self._address is None else self._every_s

    def ready(self) -> None:
        self._tell("READY=1")

    def stopping(self) -> None:
        self._tell("STOPPING=1")

    def alive(self) -> None:
        """For the watchdog; may be called as often as one likes."""
        now_s = time.monotonic()
        if self._every_s is not None and now_s - self._alive_s >= self._every_s:
            self._alive_s = now_s
            self._tell("WATCHDOG=1")

    def _tell(self, state: str) -> None:
        if self._address is None:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.setblocking(False)
            try:
                systemd.sendto(state.encode(), address)
            except OSError:
                return  # systemd has its own time limits for who stays silent
