"""Low or high speed of a movement: by a receiver's speed where there is one, else by its events as a whole, as Mohan et al.
(section 4.2) class their traces."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tandem.mobility.cells import NewCells
from tandem.mobility.changes import Changes
from tandem.mobility.fused_settings import FusedSettings
from tandem.mobility.levels import cell_of
from tandem.mobility.settings import Settings
from tandem.mobility.speed import MeanSpeed
from tandem.schema.record import Record

BOUNDARY_KM_H = 10.0
"""What low and high mean: on foot, or by whatever has a motor."""

LEAST_S = 60.0
"""A shorter movement has no class."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one movement so far: ``changes`` of 6 dB or more, ``large`` ones of more than 8 dB, cells new to their modem."""

    changes: int = 0
    large: int = 0
    new_cells: int = 0
    modems: int = 1


def evidence_of_high_speed(counts: Counts, moved_s: float) -> float:
    """Above 0: high.

    The paper has its model go by the frequency of events, without numbers, and says that changes of up to 8 dB are most of
    those on foot and greater ones most of those on wheels. The plain frequencies of changes and handovers do not carry over from
    one kind of modem to another: the bench's modems on foot tell three times as many as a telephone in a car. So two that do:
    cells new to the modem a minute, against 0.8, and the share of changes above 8 dB, against 30 %; 25 % and less bring -1,
    35 % and more bring 1. Both are drawn towards neutral by as much as one minute and six changes would say, so that a short
    movement is not classed by chance.
    """
    new_a_minute = (counts.new_cells / counts.modems + 0.8) / (moved_s / 60 + 1)
    share = (counts.large + 6 * 0.30) / (counts.changes + 6)
    return math.log(new_a_minute / 0.8) + min(1.0, max(-1.0, (share - 0.30) / 0.05))


@dataclass(frozen=True, slots=True)
class SpeedClass:
    """``kind``: ``low`` or ``high``; ``by``: ``speed`` (good fixes over half of the movement or more) or ``events``, a hint."""

    kind: str
    by: str

    def as_fields(self) -> dict[str, str]:
        """Of an event record."""
        return {"speed_class": self.kind, "speed_class_by": self.by}


class SpeedClassifier:
    """Feed every radio and position record; ``begin`` when movement starts, ``end`` when it stops."""

    LARGE_DB = 8.0
    MEMORY_S = 600.0

    def __init__(self, settings: Settings, fused: FusedSettings | None = None) -> None:
        self._settings = settings
        self._speed = MeanSpeed(fused or FusedSettings())
        self._changes = Changes(settings.quantity, settings.successive_ns)
        self._cells: dict[str, NewCells] = {}
        self._last_ns: dict[str, int] = {}
        self._heard: set[str] = set()
        self._counts = Counts()
        self._begin_ns: int | None = None

    def begin(self, monotonic_ns: int) -> None:
        """A movement began."""
        self._begin_ns, self._counts = monotonic_ns, Counts()
        self._heard.clear()
        self._speed.begin()

    def end(self, monotonic_ns: int) -> SpeedClass | None:
        """The class of the movement that ended; None when it was too short to tell."""
        found = self.so_far(monotonic_ns)
        self._begin_ns = None
        return found

    def so_far(self, monotonic_ns: int) -> SpeedClass | None:
        """The class of the movement until now; None when there is none, or it is too short to tell."""
        if self._begin_ns is None or monotonic_ns - self._begin_ns < LEAST_S * 1e9:
            return None
        moved_ns = monotonic_ns - self._begin_ns
        mean_km_h = self._speed.km_h(moved_ns)
        if mean_km_h is not None:
            return SpeedClass("high" if mean_km_h > BOUNDARY_KM_H else "low", "speed")
        counts = replace(self._counts, modems=max(1, len(self._heard)))
        return SpeedClass("high" if evidence_of_high_speed(counts, moved_ns / 1e9) > 0 else "low", "events")

    def feed(self, record: Record) -> None:
        """Count what this record shows. Cells are remembered from before a movement too."""
        if record.measurement == "position" and self._begin_ns is not None:
            self._speed.feed(record)
        path, now = record.tags.get("path"), record.monotonic_ns
        if record.measurement != "radio" or path is None or record.fields.get("stale") is True:
            return
        if now <= self._last_ns.get(path, -1):
            return
        self._last_ns[path] = now
        change, cell = self._changes.feed(record), cell_of(record)
        new = cell is not None and self._cells.setdefault(path, NewCells(self.MEMORY_S)).feed(now, cell)
        if self._begin_ns is None:
            return
        self._heard.add(path)
        size_db = abs(change.change_db) if change is not None else 0.0
        self._counts = replace(
            self._counts,
            changes=self._counts.changes + (size_db >= self._settings.threshold_db),
            large=self._counts.large + (size_db > self.LARGE_DB),
            new_cells=self._counts.new_cells + new,
        )
