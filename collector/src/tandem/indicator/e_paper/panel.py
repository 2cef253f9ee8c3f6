"""The panel's controller, Solomon Systech SSD1680 (data sheet 0.14, section 7), over a bus: commands, and waits with a bound.

The glass is 122 sources wide and 250 gates high; our pictures lie on its long side, turned by a quarter.
"""

from __future__ import annotations

import time
from typing import Protocol

from tandem.indicator.e_paper.page import COLUMNS, ROWS, Picture

_ROW_BYTES = (ROWS + 7) // 8
BUSY_S = 10.0
"""A full refresh takes 2 to 4 s at room temperature, and longer in the cold; below 0 degC the panel is not specified."""
_LOOK_S = 0.02

SOFTWARE_RESET = 0x12
DRIVER_OUTPUT, DATA_ENTRY, BORDER, UPDATE_1, SENSOR = 0x01, 0x11, 0x3C, 0x21, 0x18
X_RANGE, Y_RANGE, X_AT, Y_AT = 0x44, 0x45, 0x4E, 0x4F
WRITE, UPDATE_2, ACTIVATE, DEEP_SLEEP = 0x24, 0x22, 0x20, 0x10


class Bus(Protocol):
    """SPI and three lines. OSError when it fails."""

    def command(self, code: int, data: bytes = b"") -> None:
        """A command byte with the data/command line low, its data with the line high."""
        ...

    def reset(self, *, low: bool) -> None:
        """The reset line."""
        ...

    def busy(self) -> bool:
        """The controller's busy line."""
        ...


def frame(picture: Picture) -> bytes:
    """The controller's memory: gate by gate, eight sources a byte, the first in the highest bit, 1 for white. Pure."""
    made = bytearray(b"\xff" * (_ROW_BYTES * COLUMNS))
    for row, dots in enumerate(picture.black):
        source = ROWS - 1 - row
        for gate, black in enumerate(dots):
            if black:
                made[gate * _ROW_BYTES + source // 8] &= ~(0x80 >> source % 8) & 0xFF
    return bytes(made)


def show(bus: Bus, picture: Picture, busy_s: float = BUSY_S) -> None:
    """Wake the controller, give it the picture, refresh, and let it sleep. OSError or TimeoutError when that fails."""
    for low, seconds in ((False, 0.01), (True, 0.005), (False, 0.01)):
        bus.reset(low=low)
        time.sleep(seconds)  # of the data sheet, not of a wait for something
    _wait(bus, busy_s)
    bus.command(SOFTWARE_RESET)
    _wait(bus, busy_s)
    last = COLUMNS - 1
    bus.command(DRIVER_OUTPUT, bytes((last & 0xFF, last >> 8, 0)))
    bus.command(DATA_ENTRY, b"\x03")  # both addresses count up, X first
    bus.command(X_RANGE, bytes((0, _ROW_BYTES - 1)))
    bus.command(Y_RANGE, bytes((0, 0, last & 0xFF, last >> 8)))
    bus.command(BORDER, b"\x05")  # white, as the paper
    bus.command(UPDATE_1, b"\x00\x80")  # sources 8 to 175, as this glass is wired
    bus.command(SENSOR, b"\x80")  # the temperature sensor inside chooses the waveform
    bus.command(X_AT, b"\x00")
    bus.command(Y_AT, b"\x00\x00")
    bus.command(WRITE, frame(picture))
    bus.command(UPDATE_2, b"\xf7")  # clock, analog, temperature, waveform, display, all off again
    bus.command(ACTIVATE)
    _wait(bus, busy_s)
    bus.command(DEEP_SLEEP, b"\x01")


def _wait(bus: Bus, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while bus.busy():
        if time.monotonic() >= until_s:
            raise TimeoutError(f"the panel is busy for more than {seconds:g} s; mend: its BUSY wire, or the panel")
        time.sleep(_LOOK_S)
