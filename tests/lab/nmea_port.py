"""A serial port on which a receiver speaks: what gpsd reads in a test."""

from __future__ import annotations

import contextlib
import os
import pty
import threading
import time
import tty

import nmea


class NmeaPort:
    """A serial port that speaks NMEA each whole second, the route of ``places`` and then its last place."""

    def __init__(self, places: list[nmea.Place]) -> None:
        self._places = places
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        self.device = os.ttyname(slave)
        os.chmod(self.device, 0o666)  # noqa: PTH101, S103  a test's own pty; gpsd gives up root's rights
        self._slave = slave
        self.true: dict[int, nmea.Place] = {}
        """Where the receiver was at which second of UTC."""
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._speak, self._swallow)]
        for thread in self._threads:
            thread.start()

    def _speak(self) -> None:
        for n in range(10_000):
            utc_s = int(time.time()) + 1
            if self._stop.wait(max(0.0, utc_s + 0.1 - time.time())):  # a receiver needs its time to compute
                return
            place = self._places[min(n, len(self._places) - 1)]
            self.true[utc_s] = place
            os.write(self._master, nmea.second(place, utc_s))

    def _swallow(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while os.read(self._master, 4096):
                pass

    def close(self) -> None:
        self._stop.set()
        self._threads[0].join(5)
        os.close(self._slave)
        os.close(self._master)
        self._threads[1].join(5)
