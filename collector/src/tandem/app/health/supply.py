"""The supply and the slowed processor of a Raspberry Pi: which source this machine has, and what it told so far."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from tandem.app.health import firmware
from tandem.app.health.roots import Roots, text_of
from tandem.app.health.throttled import NAMES, Throttled, of_text

_SYSFS = "devices/platform/soc*/*:firmware/get_throttled"
"""soc/soc:firmware, on a Pi 5 soc@107c000000/soc@107c000000:firmware. Deprecated: the kernel says so in its log, once."""

_GONE = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTTY, errno.EINVAL, errno.ENXIO)
"""Errors of a source that this machine does not have, or not for us."""


class Supply:
    """``look`` once a second, ``told`` once a round."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._alarm = next((d / "in0_lcrit_alarm" for d in hwmon(roots) if text_of(d / "name") == "rpi_volt"), None)
        self._sources: list[Callable[[], str | None]] = [self._by_firmware, self._by_sysfs]
        self._sysfs = next(iter(sorted(roots.sys.glob(_SYSFS))), None)
        self._low = False
        self._since: set[str] = set()

    def look(self) -> None:
        """Whether the supply was low in the last two seconds, so that a dip between two rounds is seen too: the kernel's sensor asks
        the firmware every two seconds, and tells what was in between."""
        if self._alarm is not None and text_of(self._alarm) == "1":
            self._low = True

    def told(self, bits: Throttled | None) -> dict[str, bool | None]:
        """Fields of a ``health`` record; none where there is neither firmware nor alarm. ``bits``: of ``bits()``, None also when it
        failed: the alarm is told all the same."""
        self.look()
        if bits is None and self._alarm is None:
            return {}
        now = set(bits.now) if bits is not None else set()
        since_look, self._low = self._low, False
        if since_look:
            now.add("undervoltage")
        self._since |= now | (set(bits.since) if bits is not None else set())
        known = NAMES if bits is not None else NAMES[:1]
        return {
            **{name: name in now for name in known},
            **{f"{name}_since_boot": name in self._since for name in known},
        }

    def bits(self) -> Throttled | None:
        """The firmware's; None where there is none. ValueError when its answer cannot be read, OSError when it gives none now."""
        while self._sources:
            text = self._sources[0]()
            if text is not None:
                return of_text(text)
            del self._sources[0]
        return None

    def _by_firmware(self) -> str | None:
        try:
            return firmware.command(self._roots.vcio, "get_throttled")
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise

    def _by_sysfs(self) -> str | None:
        return None if self._sysfs is None else text_of(self._sysfs)


def hwmon(roots: Roots) -> list[Path]:
    """The folders of the kernel's sensors, in order."""
    return sorted(roots.sys.glob("class/hwmon/hwmon*"))
