"""SPI and GPIO lines by the kernel's character devices, with the standard library.

Layouts and numbers: <linux/spi/spidev.h>, and <linux/gpio.h>, whose version 2 of the line interface is there since Linux 5.10.
"""

from __future__ import annotations

import fcntl
import os
import struct

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
        """Drive one line."""
        fcntl.ioctl(self._fd, VALUES_SET, VALUES.pack((1 if high else 0) << place, 1 << place))

    def get(self, place: int) -> bool:
        """Whether a line is high."""
        values = bytearray(VALUES.pack(0, 1 << place))
        fcntl.ioctl(self._fd, VALUES_GET, values)
        return bool(VALUES.unpack(values)[0] >> place & 1)

    def close(self) -> None:
        """Give them back."""
        os.close(self._fd)


class KernelBus:
    """See ``panel.Bus``. A context; OSError when a device or line cannot be had."""

    def __init__(self, spi: str, gpio: str, data_command: int, reset: int, busy: int) -> None:
        self._opened: list[int] = []
        self._lines: list[Lines] = []
        try:
            self._spi = self._open(spi)
            fcntl.ioctl(self._spi, SPI_MODE, b"\x00")
            fcntl.ioctl(self._spi, SPI_BITS, b"\x08")
            fcntl.ioctl(self._spi, SPI_SPEED, struct.pack("=I", SPEED_HZ))
            chip = self._open(gpio)
            self._out = Lines(chip, [data_command, reset], OUTPUT)
            self._lines.append(self._out)
            self._in = Lines(chip, [busy], INPUT)
            self._lines.append(self._in)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> KernelBus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def command(self, code: int, data: bytes = b"") -> None:
        """See ``panel.Bus``."""
        self._out.set(0, high=False)
        self._write(bytes((code,)))
        if data:
            self._out.set(0, high=True)
            self._write(data)

    def reset(self, *, low: bool) -> None:
        """See ``panel.Bus``."""
        self._out.set(1, high=not low)

    def busy(self) -> bool:
        """See ``panel.Bus``."""
        return self._in.get(0)

    def close(self) -> None:
        """Give everything back."""
        while self._lines:
            self._lines.pop().close()
        while self._opened:
            os.close(self._opened.pop())

    def _open(self, device: str) -> int:
        self._opened.append(os.open(device, os.O_RDWR | os.O_CLOEXEC))
        return self._opened[-1]

    def _write(self, data: bytes) -> None:
        left = data
        while left:
            left = left[os.write(self._spi, left[:_CHUNK]) :]
