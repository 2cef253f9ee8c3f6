"""What time a record gets: UTC from CLOCK_MONOTONIC by the boot's offset, also for records made before the clock was set."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tandem.spool.durable import write_durably

PLAUSIBLE_UTC_NS = 1_735_689_600 * 10**9
"""2025-01-01. A clock before it was never set; a Raspberry Pi without a battery starts with the time of its last shutdown, so a
clock behind it is not proof that it was set: chrony's word will replace this rule on the image."""

STEP_NS = 500_000_000
_BOOTS = 50


def boot_id() -> str:
    """The kernel's UUID of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Clock:
    """The offset of this boot, and those of earlier ones, remembered in ``file``. Read by any thread, observed by one."""

    def __init__(
        self,
        file: Path,
        boot: str | None = None,
        utc_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.boot = boot if boot is not None else boot_id()
        self._file, self._utc_ns, self._monotonic_ns = file, utc_ns, monotonic_ns
        self._offsets = _read(file)
        self._stored: int | None = None
        self._offset: int | None = None
        self.steps = 0
        self.observe()

    @property
    def synchronised(self) -> bool:
        """Whether records get a time now."""
        return self._offset is not None

    def observe(self) -> int | None:
        """Look at the clocks; call it about once a second. The step in ns when the clock was stepped, else None.

        Small differences are followed: the kernel slews the clock. Raises OSError when the disk takes no new offset.
        """
        now = self._utc_ns()
        offset = now - self._monotonic_ns()
        if now < PLAUSIBLE_UTC_NS:
            return None
        before, self._offset = self._offset, offset
        stepped = None if before is None or abs(offset - before) < STEP_NS else offset - before
        if stepped is not None:
            self.steps += 1
        if self._stored is None or abs(offset - self._stored) >= STEP_NS:
            self._offsets[self.boot] = offset
            newest = dict(list(self._offsets.items())[-_BOOTS:])
            write_durably(self._file, json.dumps({"format": "tandem-boots/1", "offsets_ns": newest}).encode())
            self._stored = offset  # only now: what a full disk did not take is written at the next look
        return stepped

    def utc_ns(self, monotonic_ns: int) -> int | None:
        """UTC of an instant of this boot; None while the clock is not set."""
        return None if self._offset is None else monotonic_ns + self._offset

    def utc_of(self, boot: str, monotonic_ns: int) -> int | None:
        """UTC of an instant of any boot. None: this boot's clock is not set yet; ValueError: an earlier boot's never was."""
        if boot == self.boot:
            return self.utc_ns(monotonic_ns)
        if boot not in self._offsets:
            raise ValueError(f"the clock was never set in boot {boot}")
        return monotonic_ns + self._offsets[boot]

    def state(self) -> dict[str, Any]:
        """For a manifest."""
        return {
            "synchronised": self.synchronised,
            "offset_ns": self._offset,
            "steps": self.steps,
            "source": "system clock",
        }


def _read(file: Path) -> dict[str, int]:
    try:
        found = json.loads(file.read_bytes())["offsets_ns"]
        return {str(boot): int(offset) for boot, offset in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        # Only records of earlier boots without a time depend on it; those are then rejected with that reason.
        return {}
