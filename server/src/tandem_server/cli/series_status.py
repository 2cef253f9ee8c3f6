"""What ``tandem-server series status`` tells."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tandem.schema.rollups import ROLLUPS
from tandem_server.ingest.rolling import FRESH
from tandem_server.registry.late import CONSUMERS, LateHours
from tandem_server.store import Influx
from tandem_server.store.preparing import Prepared
from tandem_server.store.rollup_queries import made_by


def status_json(store: Influx, found: Prepared, late: LateHours) -> dict[str, Any]:
    """``tandem-series/1`` (docs/reference/ledger.md). sqlite3.Error."""
    settled = late.settled()
    fresh = settled.get(FRESH)
    waiting = {consumer: late.waiting(consumer) for consumer in CONSUMERS}
    return {
        "format": "tandem-series/1",
        "url": store.url,
        "database": store.database,
        "policies": found.policies,
        "mapping": found.mapping,
        "lacks": found.lacks,
        "fresh_utc_s": None if fresh is None else fresh.through_utc_s,
        "settled": {
            name: settled[name].through_utc_s if name in settled and settled[name].made_by == made_by(name) else None
            for name in ROLLUPS
        },
        "late": {consumer: {"hours": hours, "noted_utc_ns": noted} for consumer, (hours, noted) in waiting.items()},
    }


def status_lines(store: Influx, found: Prepared, late: LateHours, now_s: float) -> list[str]:
    """The same for people."""
    told = status_json(store, found, late)
    lines = [f"database  {store.database} at {store.url}"]
    for policy, duration in found.policies.items():
        lines.append(f"policy    {policy}: {'for ever' if duration == '0s' else duration}")
    if found.lacks:
        lines.append(f"LACKS     {', '.join(found.lacks)}; hint: tandem-server series prepare")
    fresh = told["fresh_utc_s"]
    lines.append(
        f"minutes   {'none made yet' if fresh is None else f'made up to {_time(fresh)}'}{_behind(fresh, now_s)}"
    )
    begun = {name: through for name, through in told["settled"].items() if through is not None}
    if begun:
        furthest = min(begun, key=lambda name: begun[name])
        lines.append(f"settled   all up to {_time(begun[furthest])} (furthest behind: {furthest})")
    if len(begun) < len(ROLLUPS):
        lines.append(f"settled   {len(ROLLUPS) - len(begun)} of {len(ROLLUPS)} measurements not begun")
    for consumer, of in told["late"].items():
        since = "" if of["noted_utc_ns"] is None else f", the first noted {_time(of['noted_utc_ns'] // 10**9)}"
        lines.append(f"late      {consumer}: {of['hours']} hours of a probe and measurement wait{since}")
    return lines


def _behind(fresh: int | None, now_s: float) -> str:
    return (
        f": {int(now_s - fresh) // 60} minutes ago; does the gateway run?"
        if fresh is not None and now_s - fresh > 300
        else ""
    )


def _time(utc_s: int) -> str:
    return datetime.fromtimestamp(utc_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
