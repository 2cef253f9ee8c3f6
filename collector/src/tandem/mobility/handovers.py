"""Handovers: another serving cell than before (Mohan et al., section 3.2, by their BSID), by polls and by what is said unasked."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.mobility.settings import Settings
from tandem.schema.record import Record


@dataclass(slots=True)
class _Cell:
    eci: int
    plmn: str | None
    rat: str | None
    monotonic_ns: int
    polls_without: int = 0
    left_eci: int | None = None
    """The cell before this one, where the modem told the change unasked, at ``told_ns``."""
    told_ns: int = 0


class HandoverDetector:
    """A ``handover`` when a path's ECI differs from the last one that was read on it.

    ``handover_kind``: ``enb`` when the eNodeB (ECI >> 8) or the network changed, ``sector`` when another cell of the same
    eNodeB serves. A changed PLMN or radio technology, and polls without a cell in between, are noted in ``detail``. A cell that the
    modem told unasked (a ``registration`` record) counts at that time, and the polls that show it too tell nothing more; several
    handovers between two polls are one only where they were not told. Some modems answer polls with the cell that they have just
    left: that is no way back while ``successive_ns`` since the report have not passed. After ``cell_memory_s`` without a cell the
    next one is a beginning, no handover.
    """

    def __init__(self, settings: Settings) -> None:
        self._memory_ns = round(settings.cell_memory_s * 1e9)
        self._settle_ns = settings.successive_ns
        self._last: dict[str, _Cell] = {}

    def feed(self, record: Record) -> list[Record]:
        """The event that this record shows, if any."""
        path = record.tags.get("path")
        if record.measurement not in ("radio", "registration") or path is None or record.fields.get("stale") is True:
            return []
        polled = record.measurement == "radio"
        before = self._last.get(path)
        if before is not None and record.monotonic_ns < before.monotonic_ns + polled:
            return []  # several lines may come by one read, at one time
        eci = record.fields.get("eci")
        if not isinstance(eci, int):
            if before is not None:
                before.polls_without += polled
            return []
        if polled and before is not None and eci == before.left_eci and self._settling(before, record.monotonic_ns):
            return []
        plmn = record.fields.get("plmn")
        now = _Cell(eci, plmn if isinstance(plmn, str) else None, record.tags.get("rat"), record.monotonic_ns)
        self._last[path] = now
        if before is None or before.eci == eci:
            if before is not None and self._settling(before, now.monotonic_ns):
                now.left_eci, now.told_ns = before.left_eci, before.told_ns
            return []
        if now.monotonic_ns - before.monotonic_ns > self._memory_ns:
            return []
        if not polled:
            now.left_eci, now.told_ns = before.eci, now.monotonic_ns
        return [self._event(path, record.tags.get("operator"), before, now)]

    def _settling(self, cell: _Cell, monotonic_ns: int) -> bool:
        return cell.left_eci is not None and monotonic_ns - cell.told_ns <= self._settle_ns

    @staticmethod
    def _event(path: str, operator: str | None, before: _Cell, now: _Cell) -> Record:
        new_network = None not in (before.plmn, now.plmn) and before.plmn != now.plmn
        notes = []
        if new_network:
            notes.append(f"PLMN {before.plmn} to {now.plmn}")
        if None not in (before.rat, now.rat) and before.rat != now.rat:
            notes.append(f"{before.rat} to {now.rat}")
        if before.polls_without:
            silent_s = (now.monotonic_ns - before.monotonic_ns) / 1e9
            notes.append(f"{before.polls_without} polls without a cell in {silent_s:.1f} s")
        same_site = before.eci >> 8 == now.eci >> 8 and not new_network
        return Record.make(
            "event",
            {"kind": "handover", "path": path, "operator": operator},
            {
                "from_eci": before.eci,
                "to_eci": now.eci,
                "handover_kind": "sector" if same_site else "enb",
                "detail": "; ".join(notes) or None,
            },
            now.monotonic_ns,
        )
