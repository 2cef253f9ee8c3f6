"""NMEA 0183 sentences of a receiver that moves along a route, and a serial port on which it speaks: a modem's NMEA port, a USB receiver."""

from __future__ import annotations

import contextlib
import math
import os
import pty
import threading
import time
import tty
from dataclasses import dataclass
from datetime import UTC, datetime

SATELLITES = ((2, 45, 110, 41), (5, 71, 30, 44), (12, 22, 290, 35), (15, 63, 190, 43), (18, 12, 60, 28), (24, 35, 240, 38),
              (25, 8, 330, 22), (29, 51, 80, 40), (31, 17, 150, 30))  # fmt: skip
"""Number, elevation, azimuth, signal; the first seven are in the fix."""
USED = 7


@dataclass(frozen=True)
class Place:
    """Degrees, m/s, degrees from north."""

    latitude_deg: float
    longitude_deg: float
    speed_m_per_s: float
    track_deg: float


def street(seconds: int, speed_m_per_s: float = 14.0) -> list[Place]:
    """A street that bends slowly, one place a second."""
    places, latitude, longitude = [], 51.8979, -8.4706
    for n in range(seconds):
        track = (40 + 2.0 * n) % 360
        places.append(Place(latitude, longitude, speed_m_per_s, track))
        latitude += speed_m_per_s * math.cos(math.radians(track)) / 111_195
        longitude += speed_m_per_s * math.sin(math.radians(track)) / 111_195 / math.cos(math.radians(latitude))
    return places


def sentence(body: str) -> bytes:
    """With its checksum: the exclusive or of all characters between $ and *."""
    check = 0
    for character in body.encode("ascii"):
        check ^= character
    return f"${body}*{check:02X}\r\n".encode("ascii")


def second(place: Place, utc_s: int) -> bytes:
    """GGA, GSA, GSV and RMC of one second."""
    at = datetime.fromtimestamp(utc_s, UTC)
    clock = f"{at:%H%M%S}.00"
    where = f"{_angle(place.latitude_deg, 2)},{'N' if place.latitude_deg >= 0 else 'S'}"
    where += f",{_angle(place.longitude_deg, 3)},{'E' if place.longitude_deg >= 0 else 'W'}"
    used = [f"{number:02d}" for number, *_ in SATELLITES[:USED]]
    bodies = [
        f"GPGGA,{clock},{where},1,{USED:02d},1.1,31.0,M,55.0,M,,",
        f"GPGSA,A,3,{','.join(used + [''] * (12 - USED))},1.9,1.1,1.5",
    ]
    groups = [SATELLITES[n : n + 4] for n in range(0, len(SATELLITES), 4)]
    for number, group in enumerate(groups, 1):
        listed = ",".join(
            f"{prn:02d},{elevation:02d},{azimuth:03d},{signal:02d}" for prn, elevation, azimuth, signal in group
        )
        bodies.append(f"GPGSV,{len(groups)},{number},{len(SATELLITES):02d},{listed}")
    knots = place.speed_m_per_s / 0.514444
    bodies.append(f"GPRMC,{clock},A,{where},{knots:.2f},{place.track_deg:.1f},{at:%d%m%y},,,A")
    return b"".join(map(sentence, bodies))


def _angle(degrees: float, digits: int) -> str:
    whole, minutes = divmod(round(abs(degrees) * 60, 5), 60)
    return f"{int(whole):0{digits}d}{minutes:08.5f}"


class NmeaPort:
    """A serial port that speaks NMEA each whole second, the route of ``places`` and then its last place."""

    def __init__(self, places: list[Place]) -> None:
        self._places = places
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        self.device = os.ttyname(slave)
        os.chmod(self.device, 0o666)  # noqa: PTH101, S103  a test's own pty; gpsd gives up root's rights
        self._slave = slave
        self.true: dict[int, Place] = {}
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
            os.write(self._master, second(place, utc_s))

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
