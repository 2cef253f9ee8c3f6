"""One round over everything that the machine tells of itself; a source that fails stops no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from tandem.app.health import memory
from tandem.app.health.roots import Roots, text_of
from tandem.app.health.software import software_fields
from tandem.app.health.storage import Room, card_fields, devices, room_of
from tandem.app.health.supply import Supply
from tandem.app.health.temperatures import Temperatures
from tandem.schema.record import Value

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class MachineState:
    """``folder``: the probe's. ``boots``: which boot of this machine it is. Used by one thread."""

    def __init__(self, roots: Roots, folder: Path, boots: int) -> None:
        self._roots, self._folder, self._boots = roots, folder, boots
        self._supply, self._temperatures = Supply(roots), Temperatures(roots)
        self._failing: set[str] = set()
        self._software: dict[str, str | None] | None = None
        self.room: Room | None = None
        """As of the last round; None when the disk could not be asked."""
        self.supply: Mapping[str, bool | None] = {}

    def look(self) -> None:
        """What is looked at once a second."""
        self._try("supply", self._supply.look)

    def fields(self) -> dict[str, Value | None]:
        """Of a ``health`` record: the machine's."""
        room = self.room = self._try("disk", lambda: room_of(self._folder))
        bits = self._try("the firmware's get_throttled", self._supply.bits)
        self.supply = self._try("supply", lambda: self._supply.told(bits)) or {}
        disk: dict[str, Value | None] = {}
        if room is not None:
            disk = {
                "disk_free_bytes": room.free_bytes,
                "disk_used_bytes": room.used_bytes,
                "disk_free_inodes": room.free_inodes,
                "disk_used_inodes": room.used_inodes,
            }
        return {
            **disk,
            "memory_available_bytes": self._proc("meminfo", memory.available_bytes),
            "load_1min": self._proc("loadavg", memory.load_1min),
            "uptime_s": self._proc("uptime", memory.uptime_s),
            "boot_count": self._boots,
            "processor_temperature_degc": self._try("processor's temperature", self._temperatures.processor),
            **self.supply,
        }

    def temperatures(self) -> dict[str, float]:
        """By sensor, in °C."""
        return self._try("temperatures", self._temperatures.all) or {}

    def cards(self) -> dict[str, dict[str, int | str | None]]:
        """By device, fields of ``card`` records."""
        found = self._try("block devices", lambda: devices(self._roots, self._folder)) or []
        told = {block.name: self._try(block.name, partial(card_fields, block)) for block in found}
        return {name: fields for name, fields in told.items() if fields is not None}

    def software(self) -> dict[str, str | None]:
        """Fields of a ``software`` record; asked once."""
        if self._software is None:
            self._software = self._try("software", lambda: software_fields(self._roots))
        return self._software or {}

    def _proc(self, name: str, parse: Callable[[str], _T]) -> _T | None:
        text = text_of(self._roots.proc / name)
        return None if text is None else self._try(name, lambda: parse(text))

    def _try(self, what: str, ask: Callable[[], _T]) -> _T | None:
        """None when it cannot be asked or says what cannot be: told in the log when that begins."""
        try:
            told = ask()
        except (OSError, ValueError) as error:
            if what not in self._failing:
                self._failing.add(what)
                log.warning("health: %s cannot be told: %s", what, error)
            return None
        self._failing.discard(what)
        return told
