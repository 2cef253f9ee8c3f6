"""What every modem family shares: a reading, an identity, and what a driver is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from tandem.at.dialogue import Response
from tandem.schema.record import Value


@dataclass(frozen=True)
class Reading:
    """What one poll found. A quantity that the modem did not give is None. Names, units and ranges: ``schema.metrics.RADIO``.

    ``rat``: ``LTE``, ``NR-NSA``, ``NR-SA``, ``WCDMA``, ``GSM`` or None. On NR-NSA all quantities are the LTE anchor's.
    ``*_code``: the code as read, where the modem answers in codes.
    """

    state: str = "unknown"
    rat: str | None = None
    rsrp_dbm: float | None = None
    rsrq_db: float | None = None
    sinr_db: float | None = None
    rssi_dbm: float | None = None
    rsrp_code: int | None = None
    rsrq_code: int | None = None
    sinr_code: int | None = None
    rssi_code: int | None = None
    plmn: str | None = None
    tac: int | None = None
    eci: int | None = None
    pci: int | None = None
    earfcn: int | None = None
    band: int | None = None

    @property
    def enb_id(self) -> int | None:
        """ECI without its last eight bits: the eNodeB (3GPP TS 36.300 clause 8.2)."""
        return None if self.eci is None else self.eci >> 8

    @property
    def sector_id(self) -> int | None:
        """The last eight bits of the ECI: the cell of its eNodeB."""
        return None if self.eci is None else self.eci & 0xFF

    @property
    def empty(self) -> bool:
        """True when the modem told nothing at all."""
        return self == Reading()

    def as_fields(self) -> dict[str, Value | None]:
        """The fields of a radio record; ``rat`` is a tag and not among them."""
        found: dict[str, Value | None] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "rat"}
        return {**found, "enb_id": self.enb_id, "sector_id": self.sector_id}


@dataclass(frozen=True)
class Identity:
    """What a modem says it is. Serial numbers (IMEI, IMSI, ICCID) are never kept."""

    manufacturer: str = ""
    model: str = ""
    revision: str = ""

    def says(self, *words: str) -> bool:
        """Whether one of the words stands in manufacturer or model, whatever their case."""
        text = f"{self.manufacturer} {self.model}".lower()
        return any(word.lower() in text for word in words)


class Driver(Protocol):
    """One modem family. It holds no state: everything it knows of a moment is in the responses of one poll."""

    @property
    def name(self) -> str:
        """The family's folder name; the tag ``driver`` of its records."""
        ...

    @property
    def setup_commands(self) -> Sequence[str]:
        """Sent once after echo is off and errors are numbers. A modem may refuse any of them."""
        ...

    @property
    def poll_commands(self) -> Sequence[str]:
        """The command lines of one poll, each an exchange of its own."""
        ...

    def matches(self, identity: Identity) -> bool:
        """Whether a modem that says this of itself is of the family."""
        ...

    def decode(self, responses: Sequence[Response]) -> Reading:
        """The reading in the responses. Pure; never raises: what cannot be read is None."""
        ...
