"""A lamp out of the kernel's LEDs: one LED of each colour, or a single one, by the files of the LED class in sysfs.

Documentation/ABI/testing/sysfs-class-led of the kernel: `brightness` from 0 to `max_brightness`; `trigger`, of which the chosen
one is in brackets, and `none` leaves the LED to who writes `brightness`.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tandem.schema.status_led import CHANNELS, COLOURS

log = logging.getLogger(__name__)

CLASS = Path("/sys/class/leds")
NAMES: dict[str, str] = {channel: f"tandem:{channel}:status" for channel in CHANNELS}
_OVERLAY = "the overlay gpio-led, or the role indicator"


@dataclass(frozen=True, slots=True)
class Leds:
    """Which LEDs make the lamp: names by channel, or ``only``, one LED for all channels, below ``folder``."""

    folder: Path = CLASS
    channels: Mapping[str, str] | None = None
    only: str | None = None

    @property
    def names(self) -> dict[str, frozenset[str]]:
        """By the LED's name, the channels for which it is lit."""
        if self.only is not None:
            return {self.only: frozenset(CHANNELS)}
        by_name: dict[str, frozenset[str]] = {}
        for channel, name in (self.channels or NAMES).items():
            by_name[name] = by_name.get(name, frozenset()) | {channel}
        return by_name


def lacking(leds: Leds) -> list[str]:
    """What keeps the lamp from being lit, one line each with the mend."""
    lines = []
    for name in leds.names:
        brightness = leds.folder / name / "brightness"
        if not brightness.exists():
            lines.append(f"status LED {name}: not below {leds.folder}; mend: {_OVERLAY}, then a restart of the machine")
        elif not os.access(brightness, os.W_OK):
            lines.append(
                f"status LED {name}: {brightness} is not for this user; mend: the udev rule 60-tandem-indicator"
            )
    return lines


class Lamp:
    """Never raises: what could not be written is counted, and told once until it works again. Used by one thread."""

    def __init__(self, leds: Leds) -> None:
        self._leds = {name: (leds.folder / name, channels) for name, channels in leds.names.items()}
        self._full: dict[str, bytes] = {}
        self._mine: set[str] = set()
        self.failures = 0
        self.trouble: str | None = None
        """The last failure, until all could be written again."""

    def show(self, colour: str) -> None:
        """Light these of the LEDs, and no others; ``dark`` for none."""
        wanted = COLOURS[colour]
        trouble = None
        for name, (folder, channels) in self._leds.items():
            try:
                self._set(name, folder, lit=bool(wanted & channels))
            except OSError as error:
                self.failures += 1
                self._mine.discard(name)
                trouble = f"{folder}: {os.strerror(error.errno) if error.errno else error}"
        if trouble is not None and self.trouble is None:
            log.warning("status LED: %s; mend: %s and its udev rule; measuring goes on", trouble, _OVERLAY)
        elif trouble is None and self.trouble is not None:
            log.warning("status LED: is written again")
        self.trouble = trouble

    def _set(self, name: str, folder: Path, *, lit: bool) -> None:
        if name not in self._mine:
            self._take(name, folder)
        _write(folder / "brightness", self._full[name] if lit else b"0")

    def _take(self, name: str, folder: Path) -> None:
        """The kernel's own trigger lets go of it."""
        self._full[name] = _full(folder)
        try:
            chosen = b"[none]" in (folder / "trigger").read_bytes()
        except FileNotFoundError:
            chosen = True  # a kernel without CONFIG_LEDS_TRIGGERS
        if not chosen:
            _write(folder / "trigger", b"none")
        self._mine.add(name)


def _full(folder: Path) -> bytes:
    try:
        told = (folder / "max_brightness").read_bytes().strip()
    except FileNotFoundError:
        return b"1"
    return told if told.isdigit() and int(told) > 0 else b"1"


def _write(file: Path, value: bytes) -> None:
    """In one write, as sysfs wants it; never makes the file."""
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        if os.write(descriptor, value + b"\n") != len(value) + 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
    finally:
        os.close(descriptor)
