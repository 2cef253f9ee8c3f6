"""The status lamp: what it can do, which pattern the kit's state asks for, and the thread that plays it."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tandem.schema.status_led import (
    CALL,
    CHANNELS,
    CHARGE,
    COLOURS,
    DATA_WAITING,
    MEASURING,
    NO_NETWORK,
    NOT_RUNNING,
    STARTING,
    STATES,
    STOPPING,
    WELL,
    LedState,
)

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


def missing_leds(leds: Leds) -> list[str]:
    """What keeps the lamp from being lit, one line each with a hint."""
    lines = []
    for name in leds.names:
        brightness = leds.folder / name / "brightness"
        if not brightness.exists():
            lines.append(f"status LED {name}: not below {leds.folder}; hint: {_OVERLAY}, then a restart of the machine")
        elif not os.access(brightness, os.W_OK):
            lines.append(
                f"status LED {name}: {brightness} is not for this user; hint: the udev rule 60-tandem-indicator"
            )
    return lines


class Lamp:
    """Never raises: what could not be written is counted, and reported once until it works again. Used by one thread."""

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
            log.warning("status LED: %s; hint: %s and its udev rule; measuring goes on", trouble, _OVERLAY)
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
        brightest = (folder / "max_brightness").read_bytes().strip()
    except FileNotFoundError:
        return b"1"
    return brightest if brightest.isdigit() and int(brightest) > 0 else b"1"


def _write(file: Path, value: bytes) -> None:
    """In one write, as sysfs wants it; never makes the file."""
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        if os.write(descriptor, value + b"\n") != len(value) + 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------------------------------------------------------------
# Which state the kit shows, chosen from a small summary of how the collector does. Pure.


FROZEN_AFTER_S = 60.0
"""The collector's own thread beats once a second; a card that writes slowly holds it up for seconds, not for a minute. Below
WatchdogSec= of tandem.service, so that the light says it before systemd starts the collector anew."""
MODEM_GONE_AFTER_S = 600.0
"""The recovery ladder's first steps mend most of it within minutes; nobody is to call for these."""
NO_NETWORK_AFTER_S = 600.0
"""Longer than a tunnel or a lift."""
DATA_WAITING_AFTER_S = 7200.0
"""Longer than a commute through the woods."""

Phase = Literal["starting", "running", "stopping", "ended"]


@dataclass(frozen=True, slots=True)
class Situation:
    """Seconds are how long something has been so; None: it is not so, or not known."""

    phase: Phase
    beat_age_s: float = 0.0
    """Since the collector's thread was last heard, while running."""
    undervoltage: bool = False
    disk_low: bool = False
    modem_gone_s: float | None = None
    no_network_s: float | None = None
    unsent_s: float | None = None
    """The age of the oldest record that has not reached the server."""
    measuring: bool = False


def _longer(seconds: float | None, limit_s: float) -> bool:
    return seconds is not None and seconds >= limit_s


_HOLDS: dict[LedState, Callable[[Situation], bool]] = {
    NOT_RUNNING: lambda now: now.phase == "ended" or (now.phase == "running" and now.beat_age_s >= FROZEN_AFTER_S),
    STOPPING: lambda now: now.phase == "stopping",
    CHARGE: lambda now: now.undervoltage,
    CALL: lambda now: now.disk_low or _longer(now.modem_gone_s, MODEM_GONE_AFTER_S),
    NO_NETWORK: lambda now: _longer(now.no_network_s, NO_NETWORK_AFTER_S),
    DATA_WAITING: lambda now: _longer(now.unsent_s, DATA_WAITING_AFTER_S),
    STARTING: lambda now: now.phase == "starting",
    MEASURING: lambda now: now.measuring,
}
"""`OFF` is not here: who plays it does not run any more."""


def holding(now: Situation) -> list[LedState]:
    """All states that hold, the gravest first; `WELL` is the last of every list of a running collector that has not frozen."""
    held = [state for state in STATES if state in _HOLDS and _HOLDS[state](now)]
    return [*held, WELL] if now.phase == "running" and NOT_RUNNING not in held else held


def choose(now: Situation) -> LedState:
    return holding(now)[0]


# ---------------------------------------------------------------------------------------------------------------------
# Plays a state on the lamp: a thread that waits for the next edge of the pattern, and does nothing in between.


LOOKS_EVERY_S = 4.0
"""A steady state has no edges; it is looked at and written again so often, for an LED that came late or was set by others."""


def at(state: LedState, since_ms: int) -> tuple[bool, int]:
    """Whether the state is lit, ``since_ms`` after it began, and the milliseconds until the next edge. Pure."""
    if not state.blinks:
        return any(lit for lit, _ in state.pattern), int(LOOKS_EVERY_S * 1000)
    left = since_ms % state.period_ms
    for lit, dark in state.pattern:
        if left < lit:
            return True, lit - left
        left -= lit
        if left < dark:
            return False, dark - left
        left -= dark
    raise AssertionError(since_ms)  # left is below the sum of all


class Player:
    """``choose`` is asked at every edge, from the player's thread, so that a collector which tells nothing any more shows it.
    ``close`` leaves the lamp in ``NOT_RUNNING``: from then on nothing runs."""

    def __init__(self, lamp: Lamp, choose: Callable[[], LedState]) -> None:
        self._lamp, self._choose = lamp, choose
        self._changed = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="status LED", daemon=True)
        self.state = choose()

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something changed: ask at once. From any thread."""
        self._changed.set()

    @property
    def playing(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """End, with the light steady."""
        self._ending = True
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._lamp.show(NOT_RUNNING.colour)
        self.state = NOT_RUNNING

    def _run(self) -> None:
        began_ns = time.monotonic_ns()
        while not self._ending:
            chosen = self._choose()
            if chosen is not self.state:
                self.state, began_ns = chosen, time.monotonic_ns()
            lit, left_ms = at(chosen, (time.monotonic_ns() - began_ns) // 1_000_000)
            self._lamp.show(chosen.colour if lit else "dark")
            if self._changed.wait(left_ms / 1000):
                self._changed.clear()
