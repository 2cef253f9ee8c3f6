"""What the exporter has to know of the clock: the time of a record, which records have none yet, and whether the server agrees."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

DOUBT_S = 60.0
"""Our clock and the server's may differ by so much, beside our own error: of what both say a second at the most is rounding, so
more is a fault of one of them. Well inside the window that the gateway takes (600 s ahead)."""

ROUNDING_S = 1.0
"""HTTP tells whole seconds (RFC 9110, 5.6.7), and some servers note the time once a second."""

FRESH_S = 600.0
"""So long a comparison holds, as long as our map is the same."""


class NotYet(Exception):  # noqa: N818  no error: the record waits
    """The record has no time yet."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A record's time. ``error_ms``: how far off it may be, None where nobody says."""

    utc_ns: int
    error_ms: float | None


class Times(Protocol):
    """The clock as the exporter sees it. From any thread."""

    def stamp(self, boot: str, monotonic_ns: int) -> Stamp:
        """The time of an instant, from now on always the same one. NotYet: ask again later; ValueError: nobody will ever know."""
        ...

    def held(self) -> list[tuple[int, int | None]]:
        """Numbers of records (first, last; None: no end) that have no time yet: they stay in the spool and hold up nobody."""
        ...

    def now_ns(self) -> int | None:
        """UTC now by the same map as this boot's records; None while there is none."""
        ...

    def map_key(self) -> object:
        """Differs when the map has changed."""
        ...

    def doubted(self, yes: bool) -> None:
        """Whether the server's clock contradicts the map: what nobody has used by the next boot is then forgotten."""
        ...

    def keep(self) -> None:
        """Make durable what was stamped, as far as the disk takes it."""
        ...


class Comparison:
    """Our clock against the ``Date`` of the server's answers. Used by one thread. ``now_s``: of any steady clock."""

    def __init__(self) -> None:
        self._at_s: float | None = None
        self._key: object = None
        self.doubt: str | None = None
        """Why one of the two clocks must be wrong; None while they agree."""

    def fresh(self, now_s: float, key: object) -> bool:
        """Whether the last comparison still says something."""
        return self._at_s is not None and self._key == key and now_s - self._at_s < FRESH_S

    def saw(
        self, date_utc_s: float | None, sent_utc_ns: int | None, answered_utc_ns: int | None, now_s: float, key: object
    ) -> None:
        """An answer came: its ``Date`` (None: it has none, and says nothing), and our clock when it was asked for and when it was there."""
        if sent_utc_ns is None or answered_utc_ns is None:
            return
        self._at_s, self._key, self.doubt = now_s, key, None
        if date_utc_s is None:
            return
        behind_s = sent_utc_ns / 1e9 - ROUNDING_S - date_utc_s
        ahead_s = date_utc_s - answered_utc_ns / 1e9
        if max(behind_s, ahead_s) > DOUBT_S:
            self.doubt = (
                f"this probe's clock says {_words(answered_utc_ns / 1e9)}, the server's {_words(date_utc_s)}: one of them is wrong; "
                "records wait until they agree; hint: see tandem status, chronyc tracking, and the server's clock"
            )


def _words(utc_s: float) -> str:
    try:
        return datetime.fromtimestamp(utc_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{utc_s:.0f} s"
