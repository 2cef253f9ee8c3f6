"""Where the sources and what is made of them lie, and what is said when one is wrong."""

from __future__ import annotations

from pathlib import Path

HARDWARE = Path(__file__).resolve().parents[2]
"""The folder ``hardware/`` of this checkout; made for a checkout, not for an installed copy."""

ROOT = HARDWARE.parent
FIELD = ROOT / "docs" / "field"
"""The field guide, whose pages show what is made of the sources."""


class SourceError(ValueError):
    """A source is wrong: one line that names the file, the line and a hint. Exit status 2."""


class LackError(RuntimeError):
    """This machine lacks a program: one line with a hint. Exit status 3."""
