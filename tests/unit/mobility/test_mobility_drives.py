"""The published rule on drives that were recorded in the field, judged by their own speed column."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.schema.record import Record

REPOSITORY = Path(__file__).parents[3]
DRIVES = Path(os.environ.get("TANDEM_SHARED", REPOSITORY.parent / "shared")) / "data" / "drives"
SECOND = 10**9
MOVING_KM_H = 3.0
HELD_S = 120.0

pytestmark = pytest.mark.skipif(
    not list(DRIVES.glob("*.csv")),
    reason=f"no drive logs in {DRIVES} (set TANDEM_SHARED to the folder that holds data/drives)",
)


@dataclass(frozen=True)
class Second:
    record: Record
    speed_km_h: float


def seconds(log: Path) -> list[Second]:
    """A log as polls, one a second: of rows with the same second the last. LTE and its NSA anchor only."""
    found: dict[int, Second] = {}
    with log.open(newline="") as rows:
        for row in csv.DictReader(rows):
            at = int((datetime.strptime(row["Timestamp"], "%Y.%m.%d_%H.%M.%S") - datetime(2019, 1, 1)).total_seconds())  # noqa: DTZ001, DTZ007 - local time, differences only
            fields = {
                "state": "unknown",
                "rsrp_dbm": None if row["RSRP"] == "-" else float(row["RSRP"]),
                "eci": int(row["RAWCELLID"]) if row["RAWCELLID"].isdecimal() else None,
            }
            rat = {"LTE": "LTE", "5G": "LTE"}.get(row["NetworkMode"], row["NetworkMode"])
            record = Record.make("radio", {"path": "a", "rat": rat}, fields, at * SECOND)
            found[at] = Second(record, float(row["Speed"]))
    return [found[at] for at in sorted(found)]


@dataclass
class Score:
    """Counts of seconds; judged causally, by the state after each poll."""

    right: int = 0
    moving: int = 0
    judged_moving: int = 0
    judged_moving_of_moving: int = 0
    polls: int = 0
    handovers: int = 0
    cell_changes: int = 0


def score(log: Path) -> Score:
    detectors, result = Detectors(Settings(stop_after_s=HELD_S)), Score()
    last_eci: int | None = None
    for second in seconds(log):
        events = detectors.feed(second.record)
        moving = second.speed_km_h > MOVING_KM_H
        result.polls += 1
        result.right += moving == detectors.mobile
        result.moving += moving
        result.judged_moving += detectors.mobile
        result.judged_moving_of_moving += moving and detectors.mobile
        result.handovers += sum(event.tags["kind"] == "handover" for event in events)
        eci = second.record.fields.get("eci")
        result.cell_changes += isinstance(eci, int) and last_eci not in (None, eci)
        last_eci = eci if isinstance(eci, int) else last_eci
    return result


def test_drives_are_mostly_judged_moving_and_standing_still_is_not() -> None:
    scores = {log.stem: score(log) for log in sorted(DRIVES.glob("*.csv"))}
    for name, one in scores.items():
        print(
            f"{name}: {one.polls} s, moving {one.moving / one.polls:.3f} by speed, {one.judged_moving / one.polls:.3f} judged, "
            f"accuracy {one.right / one.polls:.3f}, {one.handovers} handovers of {one.cell_changes} cell changes"
        )
    total = sum(one.polls for one in scores.values())
    accuracy = sum(one.right for one in scores.values()) / total
    still = total - sum(one.moving for one in scores.values())
    false_moving = sum(one.judged_moving - one.judged_moving_of_moving for one in scores.values())
    print(f"all: accuracy {accuracy:.3f}, still seconds judged moving {false_moving / still:.3f}")
    assert accuracy > 0.85
    assert false_moving / still < 0.15
    for name, one in scores.items():
        if name.startswith("drive"):
            assert one.judged_moving_of_moving > 0.8 * one.moving, name
            assert 0 < one.handovers <= one.cell_changes, name
