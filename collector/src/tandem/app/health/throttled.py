"""The bits by which a Raspberry Pi's firmware tells of a low supply and a slowed processor. Pure.

Source: Raspberry Pi documentation, ``vcgencmd get_throttled``. Bits 0 to 3 tell of now, 16 to 19 of the time since the boot; the
kernel's own sensor (``rpi_volt``) clears the latter for those who read through it, so that they then tell of the last two seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NAMES = ("undervoltage", "frequency_capped", "throttled", "soft_temperature_limit")
"""Bits 0 to 3; 16 to 19 are the same since the boot."""

_SINCE_BOOT = 16


@dataclass(frozen=True, slots=True)
class Throttled:
    """``now`` and ``since``: the names of the bits that are set."""

    now: frozenset[str]
    since: frozenset[str]


def of_bits(bits: int) -> Throttled:
    """ValueError for what the firmware never says: fewer than 0, more than 32 bits."""
    if not 0 <= bits < 1 << 32:
        raise ValueError(f"{bits} is no 32-bit value")
    return Throttled(
        frozenset(name for n, name in enumerate(NAMES) if bits >> n & 1),
        frozenset(name for n, name in enumerate(NAMES) if bits >> (n + _SINCE_BOOT) & 1),
    )


def of_text(text: str) -> Throttled:
    """From ``throttled=0x50005`` (the firmware's answer) or ``50005`` (sysfs); ValueError when it is neither."""
    match = re.fullmatch(r"(?:throttled=)?(?:0x)?([0-9a-fA-F]{1,8})", text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no answer to get_throttled")
    return of_bits(int(match[1], 16))
