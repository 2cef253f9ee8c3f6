"""What every modem family shares: a reading, an identity, and what a driver is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from tandem.at.dialogue import Response
from tandem.schema.record import Value

RATS = ("LTE", "NR-NSA", "NR-SA", "WCDMA", "GSM", "CAT-M", "NB-IOT")
"""Radio technologies that records tell apart. CAT-M and NB-IOT are LTE's own quantities on a narrow carrier."""


@dataclass(frozen=True)
class Reading:
    """What one poll found. A quantity that the modem did not give is None. Names, units and ranges: ``schema.metrics.RADIO``.

    ``rat``: one of ``RATS`` or None. On NR-NSA the plain quantities are the LTE anchor's and ``nr_*`` the secondary cell's;
    on NR-SA the plain ones are NR's (``eci`` is the NCI, ``earfcn`` the NR-ARFCN). 2G and 3G have ``lac`` and ``ci``, never
    ``tac`` and ``eci``; 3G has ``rscp_dbm`` and ``ecno_db``, never ``rsrp_dbm``. ``*_code``: the code as read, where the modem
    answers in codes.
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
    bandwidth_mhz: float | None = None
    lac: int | None = None
    ci: int | None = None
    rscp_dbm: float | None = None
    ecno_db: float | None = None
    rscp_code: int | None = None
    ecno_code: int | None = None
    nr_rsrp_dbm: float | None = None
    nr_rsrq_db: float | None = None
    nr_sinr_db: float | None = None
    nr_rsrp_code: int | None = None
    nr_rsrq_code: int | None = None
    nr_sinr_code: int | None = None
    nr_pci: int | None = None
    nr_arfcn: int | None = None
    nr_band: int | None = None

    @property
    def enb_id(self) -> int | None:
        """ECI without its last eight bits: the eNodeB (3GPP TS 36.300 clause 8.2). None on NR-SA: a gNB's id has 22 to 32 of
        the NCI's 36 bits (TS 38.413 clause 9.3.1.6), and which is not told."""
        return None if self.eci is None or self.rat == "NR-SA" else self.eci >> 8

    @property
    def sector_id(self) -> int | None:
        """The last eight bits of the ECI: the cell of its eNodeB. None on NR-SA, as ``enb_id``."""
        return None if self.eci is None or self.rat == "NR-SA" else self.eci & 0xFF

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
    """One modem family. It holds no state: everything it knows of a moment is in the responses of one poll.

    What is asked and how it is read may differ by model, which ``identity`` tells; an empty identity is a modem that has not
    told, for which the most common model's way is taken.
    """

    @property
    def name(self) -> str:
        """The family's folder name; the tag ``driver`` of its records."""
        ...

    @property
    def transport(self) -> str:
        """``at``: commands over a serial port; ``http``: requests to the stick's own web server, written ``GET /path``."""
        ...

    @property
    def reads(self) -> Sequence[str]:
        """Questions that are not asked at a poll, as they tell nothing more, whose answers are read all the same: in what people
        send, and unasked."""
        ...

    def setup_commands(self, identity: Identity) -> Sequence[str]:
        """Sent once after echo is off and errors are numbers. A modem may refuse any of them."""
        ...

    def poll_commands(self, identity: Identity) -> Sequence[str]:
        """The command lines of one poll, each an exchange of its own."""
        ...

    def matches(self, identity: Identity) -> bool:
        """Whether a modem that says this of itself is of the family."""
        ...

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """The reading in the responses, which may be of any of the family's commands, in any number. Pure; never raises: what
        cannot be read is None."""
        ...
