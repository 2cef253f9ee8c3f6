"""How what the server records is shown: its own titles, ranges, grades and words, beside those of ``tandem.schema.grades``."""

from __future__ import annotations

from tandem.schema import grades
from tandem.schema.grades import (
    COLOURS,
    EVENTS,
    NONE,
    SHARES,
    UNSENT,
    Grades,
    Meaning,
    Range,
    Scale,
    Tone,
    Words,
    title_of,
)
from tandem_server.schema.derived import DERIVED_POLICIES
from tandem_server.schema.measurements import ALL_MEASUREMENTS, PROBE_STATES

__all__ = [
    "COLOURS",
    "EVENTS",
    "SCALES",
    "SHARES",
    "STATES",
    "USUAL",
    "Meaning",
    "Range",
    "Scale",
    "Tone",
    "Words",
    "meaning",
    "meanings",
    "scale",
    "title",
    "title_of",
    "tone_of",
    "usual",
]

_TRACES = Scale(86_400, 129_600, "stated: a day; traces_after_s of the server (docs/reference/ledger.md)")

SCALES: dict[str, Scale] = {
    **grades.SCALES,
    "probe_state.unsent_oldest_s": UNSENT,
    "probe_state.last_seen_s": Scale(
        120, 300, "stated: two minutes; silent_after_s of the server (docs/reference/ledger.md)"
    ),
    "gateway.lines_rejected": NONE,
    "gateway_process.writes_failed": NONE,
    "gateway_process.acknowledged_p95_ms": Scale(1000, 5000, "the gateway calls more than a second slow; stated: 5 s"),
    "server_health.cpu_percent": Scale(70, 90, "stated: room for a backlog; none"),
    "server_health.database_answer_ms": Scale(100, 1000, "stated: a ping of a database on the same machine"),
    "server_traces.unfinished_oldest_s": _TRACES,
    "ledger.runs_missing": NONE,
    "ledger.incomplete_s": _TRACES,
    "ledger.files_incomplete_s": _TRACES,
    "ledger_records.unexplained": NONE,
}

USUAL: dict[str, Range] = {**grades.USUAL, "server_health.cpu_percent": Range(0, 100)}

_PROBE: Words = {
    "measuring": Meaning("measuring", "good"),
    "idle": Meaning("idle", "good"),
    "online_not_measuring": Meaning("online, not measuring", "poor"),
    "not_uploading": Meaning("not uploading", "poor"),
    "silent": Meaning("silent", "poor"),
    "never_seen": Meaning("never seen", "quiet"),
    "revoked": Meaning("revoked", "quiet"),
}

_MOBILITY: Words = {
    "still": Meaning("still", "quiet"),
    **grades.STATES["health.speed_class"],
    "moving": Meaning("moving", "notice"),
    "": Meaning("not known", "quiet"),
}

STATES: dict[str, Words] = {
    **grades.STATES,
    "probe_state.state": _PROBE,
    "probe_state.state_code": {str(n): _PROBE[state] for n, state in enumerate(PROBE_STATES)},
    "expected.seen": {"0": Meaning("silent", "poor"), "1": Meaning("heard of", "good")},
    **{f"{measurement}.mobility": _MOBILITY for measurement in DERIVED_POLICIES if not measurement.startswith("area")},
}
"""By ``measurement.field``; ``mobility`` is a tag."""

_ALL = Grades(ALL_MEASUREMENTS, SCALES, USUAL, STATES)
scale, tone_of, title, usual = _ALL.scale, _ALL.tone_of, _ALL.title, _ALL.usual
meanings, meaning = _ALL.meanings, _ALL.meaning
