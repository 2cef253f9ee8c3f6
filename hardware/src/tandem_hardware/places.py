"""Where the sources and what is made of them lie."""

from __future__ import annotations

from pathlib import Path

HARDWARE = Path(__file__).resolve().parents[2]
"""The folder ``hardware/`` of this checkout; made for a checkout, not for an installed copy."""

ROOT = HARDWARE.parent
