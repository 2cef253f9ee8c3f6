"""Hand-made series of polls and the events they must give: one folder a behaviour, named after it."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.schema.record import Record

GOLDEN = Path(__file__).parent / "golden"


def record(row: dict[str, str]) -> Record:
    """A row of input.csv; the state ``stale`` is an idle poll that is marked stale."""
    stale = row["state"] == "stale"
    return Record.make(
        "radio",
        {"path": row["path"], "rat": row["rat"]},
        {
            "state": "idle" if stale else row["state"],
            "stale": stale,
            "rsrp_dbm": float(row["rsrp_dbm"]) if row["rsrp_dbm"] else None,
            "eci": int(row["eci"]) if row["eci"] else None,
            "plmn": row["plmn"] or None,
        },
        round(float(row["t_s"]) * 1e9),
    )


def told(event: Record) -> dict[str, Any]:
    return {"t_s": event.monotonic_ns / 1e9, **event.tags, **event.fields}


@pytest.mark.parametrize("folder", sorted(GOLDEN.iterdir()), ids=lambda folder: folder.name)
def test_golden(folder: Path) -> None:
    detectors = Detectors(Settings(**tomllib.loads((folder / "config.toml").read_text())))
    with (folder / "input.csv").open(newline="") as rows:
        events = [told(event) for row in csv.DictReader(rows) for event in detectors.feed(record(row))]
    assert events == [json.loads(line) for line in (folder / "expected.jsonl").read_text().splitlines()]
