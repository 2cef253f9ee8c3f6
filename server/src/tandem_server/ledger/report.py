"""What a probe's spool reported of itself: one record of the measurement ``spool``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SpoolReport:
    """The fields of the record (``tandem.schema.metrics``), its boot and its time."""

    probe: str
    boot: str
    utc_ns: int
    spool: str
    first: int
    made: int
    sent: int
    rejected: int
    dropped: int
    settled: int
    oldest_s: float | None
    manifests: int

    @property
    def waiting(self) -> int:
        """Not yet settled then."""
        return max(0, self.made - self.sent - self.rejected - self.dropped)

    @property
    def settled_before_utc_ns(self) -> int:
        """What was recorded before this time is settled."""
        return self.utc_ns - int((self.oldest_s or 0.0) * 1e9)


def report_of(probe: str, boot: str, utc_ns: int, fields: Mapping[str, Any]) -> SpoolReport | None:
    """The report in a record as stored; None when it is no whole one (another version's)."""
    spool, oldest_s = fields.get("spool"), fields.get("oldest_s")
    counts = [fields.get(name) for name in ("first", "made", "sent", "rejected", "dropped", "settled")]
    if not isinstance(spool, str) or not all(isinstance(n, int | float) for n in counts):
        return None
    first, made, sent, rejected, dropped, settled = (int(n) for n in counts if n is not None)
    # Nothing is older than 1970, whatever a probe says: times that come of this age go into SQLite.
    age = min(float(oldest_s), utc_ns / 1e9) if isinstance(oldest_s, int | float) else None
    return SpoolReport(
        probe,
        boot,
        utc_ns,
        spool,
        first,
        made,
        sent,
        rejected,
        dropped,
        min(settled, made),
        age,
        int(fields.get("manifests") or 0),
    )
