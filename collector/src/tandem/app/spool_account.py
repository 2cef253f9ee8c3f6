"""The spool's account as a record, for the server's ledger."""

from __future__ import annotations

from tandem.schema.record import Record, Value
from tandem.spool import Spool, SpoolFullError


def spool_records(spool: Spool, oldest_s: float | None, manifests: int, now_ns: int) -> list[Record]:
    """One record; none while the disk cannot be read, which must not end the measuring."""
    try:
        settled = spool.settled()  # before the counts: what settles meanwhile is in them, and nobody takes it for lost
        counts = spool.counts()
    except SpoolFullError:
        return []
    fields: dict[str, Value | None] = {
        "spool": spool.identity.id,
        "first": spool.identity.first,
        "made": counts.made,
        "sent": counts.sent,
        "rejected": counts.rejected,
        "dropped": counts.dropped,
        "settled": settled,
        "oldest_s": oldest_s,
        "manifests": manifests,
    }
    return [Record.make("spool", {}, fields, now_ns)]
