"""What runs here: versions that do not change while the collector lives."""

from __future__ import annotations

import platform
import re

import tandem
from tandem.app.health import firmware
from tandem.app.health.roots import Roots, text_of


def software_fields(roots: Roots) -> dict[str, str | None]:
    """Fields of a ``software`` record."""
    release = text_of(roots.etc / "os-release")
    return {
        "tandem": tandem.__version__,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "machine": _short(text_of(roots.proc / "device-tree" / "model")) or platform.machine(),
        "system": None if release is None else pretty_name(release),
        "firmware": _firmware(roots),
        "bootloader": _short(text_of(roots.proc / "device-tree" / "chosen" / "bootloader" / "version")),
    }


def pretty_name(release: str) -> str | None:
    """The system's name as os-release(5) has it for people; None when it has none."""
    match = re.search(r"^PRETTY_NAME=([\"']?)(.{1,200}?)\1$", release, re.MULTILINE)
    return None if match is None else _short(match[2])


def _firmware(roots: Roots) -> str | None:
    try:
        return firmware.revision(roots.vcio)
    except (OSError, ValueError):  # no Raspberry Pi, or no right to ask: nothing is known
        return None


def _short(text: str | None) -> str | None:
    """At most 200 characters that can be printed; None when nothing is left."""
    return ("".join(c for c in text if c.isprintable())[:200].strip() or None) if text is not None else None
