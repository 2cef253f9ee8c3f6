"""An e-paper panel: letters, the page of the kit's state, the bus, the controller, and the thread that shows."""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import textwrap
import threading
import time
import unicodedata
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from tandem.schema.status_led import MEASURING, WELL, LedState

WIDTH, HEIGHT = 5, 8
ADVANCE = WIDTH + 1
Glyph = tuple[tuple[bool, ...], ...]
_UNKNOWN: Glyph = tuple(
    tuple(row in (0, 6) or column in (0, 4) for column in range(5)) if row < 7 else (False,) * 5 for row in range(8)
)
_SPELT = {
    "ß": "ss",
    "æ": "ae",
    "Æ": "AE",
    "ø": "o",
    "Ø": "O",
    "đ": "d",
    "Đ": "D",
    "ł": "l",
    "Ł": "L",
    "ı": "i",
    "–": "-",
    "—": "-",
    "’": "'",
    "…": "...",
}


@cache
def glyphs() -> dict[str, Glyph]:
    """By letter, its rows of dots."""
    lines = files(__package__).joinpath("glyphs.txt").read_text(encoding="ascii").splitlines()
    found: dict[str, Glyph] = {" ": ((False,) * WIDTH,) * HEIGHT}
    for first in range(0, len(lines), HEIGHT + 1):
        rows = [line.split() for line in lines[first + 1 : first + 1 + HEIGHT]]
        for letter, *drawn in zip(lines[first].split()[1:], *rows, strict=True):
            found[letter] = tuple(tuple(dot == "#" for dot in row) for row in drawn)
    return found


def spelt(text: str) -> str:
    """With letters that are drawn: accents are left out, and what there is none for stays as it is, to be seen as a box."""
    plain = unicodedata.normalize("NFKD", "".join(_SPELT.get(letter, letter) for letter in text))
    return " ".join("".join(letter for letter in plain if not unicodedata.combining(letter)).split())


def glyph(letter: str) -> Glyph:
    """Its dots; a box for a letter that is not drawn."""
    return glyphs().get(letter, _UNKNOWN)


def wrapped(text: str, width: int, lines: int) -> list[str]:
    """At most ``lines`` of at most ``width`` letters, broken between words where that can be; what does not fit ends in "..."."""
    return textwrap.wrap(spelt(text), width, max_lines=lines, placeholder="...", break_on_hyphens=False)


# ---------------------------------------------------------------------------------------------------------------------
# What the e-paper shows, drawn: the kit's name, the state in words, what to do, whom to call, when data last reached
# the server. Pure.


COLUMNS, ROWS = 250, 122
_MARGIN = 3
_ROOM = (COLUMNS - 2 * _MARGIN) // ADVANCE
"""Letters a line."""
_LINES = 5
_HOUR_NS = 3600 * 10**9
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Page:
    """All that is shown. Two pages that are equal look the same."""

    kit: str
    state: LedState
    call: str
    reached: str
    as_of: str


class Picture:
    """``COLUMNS`` × ``ROWS`` dots, white at first; ``black`` holds the rows, each a list of truths."""

    def __init__(self) -> None:
        self.black = [[False] * COLUMNS for _ in range(ROWS)]

    def text(self, x: int, y: int, text: str, *, wide: int = 1, tall: int = 1) -> None:
        """Letters from left to right, each dot ``wide`` × ``tall``; what lies outside is left out."""
        for number, letter in enumerate(text):
            left = x + number * ADVANCE * wide
            for row, dots in enumerate(glyph(letter)):
                for column, dot in enumerate(dots):
                    if dot:
                        self.fill(left + column * wide, y + row * tall, wide, tall)

    def fill(self, x: int, y: int, width: int, height: int) -> None:
        for row in range(max(0, y), min(ROWS, y + height)):
            for column in range(max(0, x), min(COLUMNS, x + width)):
                self.black[row][column] = True


def shown(state: LedState) -> LedState:
    """A measurement is not reported on paper: each change makes it flash for seconds, and all is well either way."""
    return WELL if state is MEASURING else state


def reached(last_ns: int | None, now_ns: int | None) -> str:
    """When data last reached the server, UTC in ns, in words that change seldom."""
    if last_ns is None or now_ns is None:
        return "Sent: not since start"
    return "Sent: within the hour" if now_ns - last_ns < _HOUR_NS else f"Sent: {_day(last_ns)}"


def as_of(now_ns: int | None) -> str:
    """The hour of the picture, which stays when the power is gone."""
    return "" if now_ns is None else f"as of {_day(now_ns - now_ns % _HOUR_NS)}"


def _day(utc_ns: int) -> str:
    moment = datetime.fromtimestamp(utc_ns // 10**9, UTC)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment:%H:%M}"


def sentences(state: LedState) -> list[str]:
    """What it means and what to do, in the lines there are; a sentence begins on a line of its own."""
    means = wrapped(state.means, _ROOM, _LINES - 1)
    return means + wrapped(state.do, _ROOM, _LINES - len(means))


def drawn(page: Page) -> Picture:
    """The picture. Sentences are drawn narrow and tall, 40 letters a line and 2.7 mm high."""
    picture, room = Picture(), _ROOM
    picture.text(_MARGIN, 2, page.state.title[: room // 2], wide=2, tall=2)
    kit = spelt(page.kit)[: room - 2 * len(page.state.title) - 1]
    picture.text(COLUMNS - _MARGIN - len(kit) * ADVANCE, 6, kit)
    picture.fill(0, 19, COLUMNS, 1)
    for number, line in enumerate(sentences(page.state)):
        picture.text(_MARGIN, 22 + number * 2 * HEIGHT, line, tall=2)
    picture.fill(0, 101, COLUMNS, 1)
    if spelt(page.call):
        picture.text(_MARGIN, 104, wrapped(f"Call {page.call}", room, 1)[0])
    picture.text(_MARGIN, 113, page.reached)
    picture.text(COLUMNS - _MARGIN - len(page.as_of) * ADVANCE, 113, page.as_of)
    return picture


# ---------------------------------------------------------------------------------------------------------------------
# SPI and GPIO lines by the kernel's character devices, with the standard library. Layouts and numbers:
# <linux/spi/spidev.h>, and <linux/gpio.h>, whose version 2 of the line interface is there since Linux 5.10.


SPI_MODE, SPI_BITS, SPI_SPEED = 0x40016B01, 0x40016B03, 0x40046B04
"""SPI_IOC_WR_MODE, SPI_IOC_WR_BITS_PER_WORD, SPI_IOC_WR_MAX_SPEED_HZ."""
SPEED_HZ = 4_000_000
_CHUNK = 2048
"""spidev takes no more than its bufsiz at once, 4096 by default."""

LINES, VALUES_GET, VALUES_SET = 0xC250B407, 0xC010B40E, 0xC010B40F
"""GPIO_V2_GET_LINE_IOCTL, GPIO_V2_LINE_GET_VALUES_IOCTL, GPIO_V2_LINE_SET_VALUES_IOCTL."""
INPUT, OUTPUT = 1 << 2, 1 << 3
"""GPIO_V2_LINE_FLAG_INPUT and _OUTPUT."""
REQUEST = struct.Struct("=64I32sQI20x240xII20xi")
"""struct gpio_v2_line_request: offsets, consumer, config (flags, num_attrs, attrs), num_lines, event_buffer_size, fd."""
VALUES = struct.Struct("=QQ")
"""struct gpio_v2_line_values: bits, mask."""


class Lines:
    """Lines of one direction; ``set`` and ``get`` by their place in ``offsets``."""

    def __init__(self, chip: int, offsets: list[int], flags: int) -> None:
        request = bytearray(
            REQUEST.pack(*offsets, *[0] * (64 - len(offsets)), b"tandem e-paper", flags, 0, len(offsets), 0, 0)
        )
        fcntl.ioctl(chip, LINES, request)
        self._fd = int(REQUEST.unpack(request)[-1])

    def set(self, place: int, *, high: bool) -> None:
        fcntl.ioctl(self._fd, VALUES_SET, VALUES.pack((1 if high else 0) << place, 1 << place))

    def get(self, place: int) -> bool:
        values = bytearray(VALUES.pack(0, 1 << place))
        fcntl.ioctl(self._fd, VALUES_GET, values)
        return bool(VALUES.unpack(values)[0] >> place & 1)

    def close(self) -> None:
        os.close(self._fd)


def _opened(stack: ExitStack, device: str) -> int:
    descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor


class KernelBus:
    """SPI and three lines of the panel. A context; OSError when a device or line cannot be had, or fails."""

    def __init__(self, spi: str, gpio: str, data_command: int, reset: int, busy: int) -> None:
        with ExitStack() as opened:
            self._spi = _opened(opened, spi)
            fcntl.ioctl(self._spi, SPI_MODE, b"\x00")
            fcntl.ioctl(self._spi, SPI_BITS, b"\x08")
            fcntl.ioctl(self._spi, SPI_SPEED, struct.pack("=I", SPEED_HZ))
            chip = _opened(opened, gpio)
            self._out = opened.enter_context(closing(Lines(chip, [data_command, reset], OUTPUT)))
            self._in = opened.enter_context(closing(Lines(chip, [busy], INPUT)))
            self._devices = opened.pop_all()

    def __enter__(self) -> KernelBus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def command(self, code: int, data: bytes = b"") -> None:
        """A command byte with the data/command line low, its data with the line high."""
        self._out.set(0, high=False)
        self._write(bytes((code,)))
        if data:
            self._out.set(0, high=True)
            self._write(data)

    def reset(self, *, low: bool) -> None:
        self._out.set(1, high=not low)

    def busy(self) -> bool:
        return self._in.get(0)

    def close(self) -> None:
        self._devices.close()

    def _write(self, data: bytes) -> None:
        left = data
        while left:
            left = left[os.write(self._spi, left[:_CHUNK]) :]


# ---------------------------------------------------------------------------------------------------------------------
# The panel's controller, Solomon Systech SSD1680 (data sheet 0.14, section 7), over a bus: commands, and waits with a
# bound. The glass is 122 sources wide and 250 gates high; our pictures lie on its long side, turned by a quarter.


_ROW_BYTES = (ROWS + 7) // 8
BUSY_S = 10.0
"""A full refresh takes 2 to 4 s at room temperature, and longer in the cold; below 0 degC the panel is not specified."""
_LOOK_S = 0.02

SOFTWARE_RESET = 0x12
DRIVER_OUTPUT, DATA_ENTRY, BORDER, UPDATE_1, SENSOR = 0x01, 0x11, 0x3C, 0x21, 0x18
X_RANGE, Y_RANGE, X_AT, Y_AT = 0x44, 0x45, 0x4E, 0x4F
WRITE, UPDATE_2, ACTIVATE, DEEP_SLEEP = 0x24, 0x22, 0x20, 0x10


def frame(picture: Picture) -> bytes:
    """The controller's memory: gate by gate, eight sources a byte, the first in the highest bit, 1 for white. Pure."""
    made = bytearray(b"\xff" * (_ROW_BYTES * COLUMNS))
    for row, dots in enumerate(picture.black):
        source = ROWS - 1 - row
        for gate, black in enumerate(dots):
            if black:
                made[gate * _ROW_BYTES + source // 8] &= ~(0x80 >> source % 8) & 0xFF
    return bytes(made)


def show(bus: KernelBus, picture: Picture, busy_s: float = BUSY_S) -> None:
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


def _wait(bus: KernelBus, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while bus.busy():
        if time.monotonic() >= until_s:
            raise TimeoutError(f"the panel is busy for more than {seconds:g} s; hint: its BUSY wire, or the panel")
        time.sleep(_LOOK_S)


# ---------------------------------------------------------------------------------------------------------------------
# Keeps the e-paper true, on a thread of its own: what it does, and how long it takes, holds up nothing else.


log = logging.getLogger(__name__)

SOONEST_S = 180.0
"""The maker asks for three minutes between refreshes."""


class Showing:
    """``draw`` puts a page on the panel, OSError or TimeoutError when that fails; then it is tried again after ``soonest_s``."""

    def __init__(self, draw: Callable[[Page], None], soonest_s: float = SOONEST_S) -> None:
        self._draw, self._soonest_s = draw, soonest_s
        self._wanted: Page | None = None
        self._shown: Page | None = None
        self._changed = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="e-paper", daemon=True)
        self.refreshes, self.failures = 0, 0
        self.trouble: str | None = None
        """The last failure, until a page was shown again."""

    def start(self) -> None:
        self._thread.start()

    def tell(self, page: Page) -> None:
        """This is to be shown. From any thread, at no cost when it is what was reported before."""
        if page != self._wanted:
            self._wanted = page
            self._changed.set()

    def close(self, last: Page | None = None, timeout_s: float = 15.0) -> None:
        """Show a last page at once, whenever the one before was: the panel keeps it without power. Gives up after ``timeout_s``."""
        if last is not None:
            self._wanted = last
        self._ending.set()
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                log.warning("e-paper: the last page was not shown within %g s", timeout_s)

    def _run(self) -> None:
        while not self._ending.is_set():
            self._changed.wait()
            self._changed.clear()
            if self._ending.is_set() or self._wanted == self._shown:
                continue
            done = self._show()
            self._ending.wait(self._soonest_s)
            if not done:
                self._changed.set()
        self._show()

    def _show(self) -> bool:
        page = self._wanted
        if page is None or page == self._shown:
            return True
        began_s = time.monotonic()
        try:
            self._draw(page)
        except (OSError, TimeoutError) as error:
            self.failures += 1
            self._shown = None  # whatever it shows now
            if self.trouble is None:
                log.warning("e-paper: %s; measuring goes on", error)
            self.trouble = str(error)
            return False
        self._shown, self.trouble = page, None
        self.refreshes += 1
        log.info("e-paper: %s, in %.1f s", page.state.name, time.monotonic() - began_s)
        return True
