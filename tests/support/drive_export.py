"""An export of a made-up campaign of days, as ``tandem-server campaign export`` writes it: two kits, drives of the first.

Nothing is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support import sample_export

S = 10**9
START = 1_795_000_000 * S
PATHS = {"red": "Elisa", "blue": "DNA"}
CELLS = (25601, 25602)
LENGTH_S = 90
DRIVES_S = (600, 90_000)
"""When two drives begin, one on the first day and the longer one on the second."""


def level(path: str, second: int) -> float:
    """Of the ``second`` of a drive: steps of 10 s, 12 dB down in the middle."""
    return {"red": -85.0, "blue": -95.0}[path] - (12.0 if 40 <= second < 60 else 0.0)


def write_records(folder: Path, probe: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    """By measurement; each row with ``utc_ns``."""
    for measurement, found in rows.items():
        sample_export.write_records(folder / "probe" / probe, measurement, found)


def drive_rows(
    begun_ns: int, names: dict[str, str], length_s: int, apart_db: float = 0.0
) -> dict[str, list[dict[str, Any]]]:
    """What is recorded of a drive over the paths that go by these ``names``."""
    radio = [
        {"utc_ns": begun_ns + second * S + S // 5, "path": names[path], "rat": "LTE", "state": "connected",
         "rsrp_dbm": level(path, second) + apart_db, "tac": 7, "eci": CELLS[second >= 50]}
        for second in range(length_s) for path in PATHS
    ]  # fmt: skip
    events = [
        {"utc_ns": begun_ns + 20 * S, "kind": "mobility_start"},
        {"utc_ns": begun_ns + 40 * S, "kind": "signal_drop", "path": names["red"], "change_db": -12.0},
        {
            "utc_ns": begun_ns + 50 * S,
            "kind": "handover",
            "path": names["red"],
            "from_eci": CELLS[0],
            "to_eci": CELLS[1],
        },
        {"utc_ns": begun_ns + 70 * S, "kind": "mobility_stop"},
    ]
    return {"radio": radio, "event": events}


def manifest(
    folder: Path, probe: str, begun_ns: int, at_s: float, kind: str, paths: list[str], rate: float, **more: Any
) -> None:
    """A download of 3 s."""
    begin = begun_ns + int(at_s * S)
    runs = folder / "probe" / probe / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    told = {
        "format": "tandem-run/1", "id": f"{probe}-{len(list(runs.iterdir()))}",
        "kind": kind, "paths": paths, "pair": "p", "pairing": "single",
        "started_utc_ns": begin, "ended_utc_ns": begin + 3 * S, "failure": None,
        "parameters": {"seconds": 3.0, "path": paths[0]},
        "result": {"goodput_bit_per_s": rate, "duration_s": 3.0, "subflows": []}, **more,
    }  # fmt: skip
    (runs / f"{told['id']}.json").write_text(json.dumps(told))


def write_export(folder: Path) -> Path:
    """Of ``kit-1`` two drives, the second of them whole (its movement lasts longer); of ``kit-2`` one."""
    rows: dict[str, list[dict[str, Any]]] = {"radio": [], "event": []}
    for begun_s in DRIVES_S:
        later = begun_s == DRIVES_S[1]
        found = drive_rows(
            START + begun_s * S, dict.fromkeys(PATHS) | {p: p for p in PATHS}, LENGTH_S - (0 if later else 30)
        )
        for name, ones in found.items():
            rows[name] += ones
    write_records(folder, "kit-1", rows)
    write_records(folder, "kit-2", drive_rows(START + 600 * S, {p: p for p in PATHS}, 60))
    begun = START + DRIVES_S[1] * S
    manifest(folder, "kit-1", begun, 5, "tcp", ["red"], 12e6, pair="a")
    manifest(folder, "kit-1", begun, 15, "tcp", ["blue"], 6e6, pair="b")
    manifest(folder, "kit-1", begun, 25, "mptcp", ["red", "blue"], 16e6, pair="c")
    manifest(folder, "kit-1", begun, 35, "any", ["red", "blue"], 0.0, pair="d")
    manifest(folder, "kit-2", begun, 5, "tcp", ["red"], 99e6)
    campaign = {
        "format": "tandem-campaign/1", "scenario": "drives", "export": {"name": "drives"}, "stopped": None, "probe": "kit-1",
        "started_utc_ns": START, "ended_utc_ns": START + 172_800 * S, "duration_s": 172_800.0,
        "probes": {kit: {"paths": {p: {"operator": o} for p, o in PATHS.items()}} for kit in ("kit-1", "kit-2")},
    }  # fmt: skip
    (folder / "campaign.json").write_text(json.dumps(campaign))
    return folder
