"""What has been played: the segments that came, the log, a row a segment, and the play's clock. Whoever plays fills it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from tandem.experiment.base import Output, record
from tandem.experiment.dash.fetch import Fetched
from tandem.experiment.dash.model import Representation, Segment
from tandem.experiment.dash.playback import Playback
from tandem.experiment.dash.qoe import Shown
from tandem.schema.metrics import DASH_SEGMENT

_RECORDED = tuple(field.name for field in DASH_SEGMENT.fields)


@dataclass(slots=True)
class Play:
    """What has been played. Times in seconds since the manifest was asked for. ``kind``, ``path``: its arm, and the primary path."""

    playback: Playback
    begun_ns: int
    kind: str
    path: str
    shown: list[Shown] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    duration_s: float | None = None
    loaded_s: float | None = None
    first_byte_ms: float | None = None

    def now(self) -> float:
        """The play's clock."""
        return (time.monotonic_ns() - self.begun_ns) / 1e9

    def tell(
        self,
        output: Output,
        segment: Segment,
        fetched: Fetched,
        r: Representation,
        *,
        carried: dict[str, int] | None,
        level_s: float,
        **more: Any,  # noqa: ANN401  any JSON value
    ) -> None:
        """A segment has come: its row into the log and onto ``output``. ``carried``: bytes of each path meanwhile; ``level_s``: of the
        buffer, with this segment in it; ``more``: the row's other keys."""
        self.shown.append(Shown(r, fetched.size_bytes, segment.start_s, segment.duration_s))
        first_byte_ms = (fetched.first_byte_ns - fetched.requested_ns) / 1e6
        if self.first_byte_ms is None:
            self.first_byte_ms = first_byte_ms
        duration_ms = (fetched.last_byte_ns - fetched.requested_ns) / 1e6
        whole = sum(carried.values()) if carried else 0
        row = {
            "number": len(self.shown),
            "requested_s": (fetched.requested_ns - self.begun_ns) / 1e9,
            "media_s": segment.start_s,
            "segment_s": segment.duration_s,
            "representation": r.id,
            "bitrate_bit_per_s": r.bandwidth_bit_per_s,
            "height": r.height,
            "bytes": fetched.size_bytes,
            "first_byte_ms": first_byte_ms,
            "duration_ms": duration_ms,
            "goodput_bit_per_s": fetched.size_bytes * 8000 / duration_ms if duration_ms > 0 else None,
            "buffer_level_ms": level_s * 1000,
            "shares": {path: count / whole for path, count in carried.items()} if carried and whole else None,
            **more,
        }
        self.log.append(row)
        output.line("segment", monotonic_ns=fetched.last_byte_ns, **row)
        fields = {name: rounded(row[name]) for name in _RECORDED if name in row}
        fields["primary_share"] = rounded(carried.get(self.path, 0) / whole) if carried and whole else None
        record(output, "dash_segment", fields, monotonic_ns=fetched.last_byte_ns, kind=self.kind, path=self.path)


def difference(before: dict[str, int] | None, after: dict[str, int] | None) -> dict[str, int] | None:
    """What each path carried between two readings of one connection; None when one of them is missing."""
    if before is None or after is None:
        return None
    return {path: max(0, count - before.get(path, 0)) for path, count in after.items()}


def rounded(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """To a thousandth, as records hold it: what nobody can tell apart is not sent over a SIM."""
    return round(value, 3) if isinstance(value, float) else value
