"""The machine's temperatures: the kernel's thermal zones and hwmon sensors.

Source: Documentation/driver-api/thermal/sysfs-api.rst and hwmon/sysfs-interface.rst: whole millidegrees Celsius.
"""

from __future__ import annotations

import re
from pathlib import Path

from tandem.app.health.roots import Roots, text_of
from tandem.app.health.supply import hwmon

LOWEST_C, HIGHEST_C = -55.0, 200.0
"""What a sensor may tell; others are disconnected or not yet read (a driver's -273 or 0x7fffffff)."""

PROCESSORS = ("cpu-thermal", "cpu_thermal", "soc-thermal", "soc_thermal", "x86_pkg_temp", "coretemp", "k10temp")
"""Names of the sensor that is the processor's, the best first."""


def degrees(text: str) -> float | None:
    """From millidegrees; None for what no sensor measures. ValueError for what is no number."""
    if re.fullmatch(r"-?[0-9]{1,10}", text) is None:
        raise ValueError(f"{text[:40]!r} is no temperature")
    value = int(text) / 1000
    return value if LOWEST_C <= value <= HIGHEST_C else None


class Temperatures:
    """Which sensors there are is looked up once."""

    def __init__(self, roots: Roots) -> None:
        self._files: dict[str, Path] = {}
        zones: set[str] = set()
        for zone in sorted(roots.sys.glob("class/thermal/thermal_zone*")):
            name = text_of(zone / "type") or zone.name
            zones.add(name.replace("-", "_"))
            self._add(name, zone / "temp")
        for folder in hwmon(roots):
            chip = text_of(folder / "name") or folder.name
            if chip.replace("-", "_") in zones:
                continue  # the kernel shows each thermal zone here too
            for file in sorted(folder.glob("temp*_input")):
                label = text_of(file.with_name(file.name.replace("_input", "_label")))
                number = file.name.removesuffix("_input")
                self._add(chip if number == "temp1" and not label else f"{chip} {label or number}", file)
        named = [next((n for n in self._files if n == p or n.startswith(f"{p} ")), None) for p in PROCESSORS]
        self._processor = next((name for name in named if name is not None), None)

    def _add(self, name: str, file: Path) -> None:
        clean = re.sub(r"[^\w .:/()+-]", "_", name)[:60] or "sensor"
        number = 1
        unique = clean
        while unique in self._files:
            number += 1
            unique = f"{clean} {number}"
        self._files[unique] = file

    def processor(self) -> float | None:
        """The processor's, in °C; None where nothing tells it."""
        return None if self._processor is None else self._read(self._files[self._processor])

    def all(self) -> dict[str, float]:
        """By sensor, those that tell one now."""
        told = {name: self._read(file) for name, file in self._files.items()}
        return {name: value for name, value in told.items() if value is not None}

    @staticmethod
    def _read(file: Path) -> float | None:
        text = text_of(file)
        return None if text is None else degrees(text)
