"""What an earlier life of the collector left of its captures, and told of them: rows of the collector's account, and events."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.capture.pcap import Salvaged, salvage_all

log = logging.getLogger(__name__)


_NAME = re.compile(r"((?:run|pair)-[0-9a-f]{12})-(.+)\.pcap\.tmp")
"""As ``pair_captures`` names them: the run's or pair's id (``schema.manifest.new_id``) and the path."""


@dataclass(frozen=True, slots=True)
class SalvagedCapture:
    """``row``: of collector.json's ``captures``, None when nothing of it was whole; ``path``: whose it was, None when its
    name does not tell; ``detail``: for people."""

    row: dict[str, Any] | None
    path: str | None
    detail: str


def salvaged_captures(folder: Path) -> list[SalvagedCapture]:
    """Salvage what lies in the probe's ``folder``."""
    found = [_told(one) for one in salvage_all(folder / "captures")]
    for one in found:
        log.warning("%s", one.detail)
    return found


def _told(one: Salvaged) -> SalvagedCapture:
    name = _NAME.fullmatch(one.left.name)
    owner, path = (name[1], name[2]) if name is not None else ("", None)
    if one.file is None:
        return SalvagedCapture(
            None, path, f"captures/{one.left.name} had no whole packet: {one.lost_bytes} bytes lost, it is gone"
        )
    row = {
        "file": f"captures/{one.file.name}",
        "bytes": one.bytes,
        "packets": one.packets,
        "path": path,
        "cut": True,
        "run": owner if owner.startswith("run-") else None,
        "pair": owner if owner.startswith("pair-") else None,
        "sha256": one.sha256,
    }
    lost = f", {one.lost_bytes} bytes of its end lost" if one.lost_bytes else ""
    detail = f"captures/{one.file.name} was never closed: {one.packets} whole packets ({one.bytes} bytes) kept{lost}"
    return SalvagedCapture(row, path, detail)


def earlier_captures(file: Path, now: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """What an earlier life of this collector told of captures that still lie in the probe's ``folder``, but for those in ``now``; ``file``:
    its account. Nothing when that cannot be read."""
    try:
        told = json.loads(file.read_bytes())["captures"]
        names = {row["file"] for row in now}
        return [row for row in told if row["file"] not in names and (folder / row["file"]).exists()]
    except (OSError, ValueError, KeyError, TypeError):
        return []
