"""What is read of one probe's records, as the joins need it. Times are UTC ns; what is absent is None."""

from __future__ import annotations

from dataclasses import dataclass

S_NS = 10**9


@dataclass(frozen=True, slots=True)
class Poll:
    """One radio record. ``answered``: the modem did; ``served``: a network serves it; ``rsrp_dbm``: None where it is stale, too."""

    utc_ns: int
    path: str
    operator: str
    rat: str
    answered: bool
    served: bool
    rsrp_dbm: float | None


@dataclass(frozen=True, slots=True)
class Fix:
    """One position record with a position. ``full``: not coarsened by the privacy mode."""

    utc_ns: int
    latitude_deg: float
    longitude_deg: float
    full: bool
    error_m: float | None


@dataclass(frozen=True, slots=True)
class Handover:
    """One event of that kind."""

    utc_ns: int
    path: str
    operator: str


@dataclass(frozen=True, slots=True)
class Telling:
    """What the probe said of its mobility: ``begins`` and ``ends`` are its events, the others its health records."""

    utc_ns: int
    mobile: bool
    speed_class: str | None
    begins: bool = False
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """One second of a TCP download over one path alone."""

    utc_ns: int
    path: str
    goodput_bit_per_s: float


@dataclass(frozen=True, slots=True)
class RunEnded:
    """One run record with its tags. ``of``: how many runs its pair was to have; None when its beginning is not known."""

    utc_ns: int
    id: str
    kind: str
    path: str
    pair: str
    pairing: str
    campaign: str
    ok: bool
    goodput_bit_per_s: float | None
    duration_s: float | None
    fallback: bool | None
    of: int | None
