"""Modems that went silent and came back."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.mobility.settings import Settings
from tandem.schema.record import Record

FAILED_STATES = ("no_answer", "port_lost")


@dataclass(slots=True)
class _Silence:
    polls: int = 0
    since_ns: int = 0
    last_ns: int = -1
    reported: bool = False


class PresenceDetector:
    """``modem_lost`` at the poll that makes ``lost_after_polls`` failed ones in a row, ``modem_back`` at the first good one."""

    def __init__(self, settings: Settings) -> None:
        self._after = settings.lost_after_polls
        self._silences: dict[str, _Silence] = {}

    def feed(self, record: Record) -> list[Record]:
        """The event that this record shows, if any."""
        path = record.tags.get("path")
        if record.measurement != "radio" or path is None:
            return []
        silence = self._silences.setdefault(path, _Silence())
        if record.monotonic_ns <= silence.last_ns:
            return []
        silence.last_ns = record.monotonic_ns
        if record.fields.get("state") in FAILED_STATES:
            if silence.polls == 0:
                silence.since_ns = record.monotonic_ns
            silence.polls += 1
            if silence.reported or silence.polls < self._after:
                return []
            silence.reported = True
            return [self._event("modem_lost", record, f"{silence.polls} polls failed, last: {record.fields['state']}")]
        reported, silent_s = silence.reported, (record.monotonic_ns - silence.since_ns) / 1e9
        polls = silence.polls
        self._silences[path] = _Silence(last_ns=record.monotonic_ns)
        return [self._event("modem_back", record, f"after {polls} failed polls, {silent_s:.1f} s")] if reported else []

    @staticmethod
    def _event(kind: str, record: Record, detail: str) -> Record:
        tags = {"kind": kind, "path": record.tags.get("path"), "operator": record.tags.get("operator")}
        return Record.make("event", tags, {"detail": detail}, record.monotonic_ns)
