"""What every modem family shares: a reading, an identity, and what a driver is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, cast

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
        the NCI's 36 bits (TS 38.413 clause 9.3.1.6), and which is not reported."""
        return None if self.eci is None or self.rat == "NR-SA" else self.eci >> 8

    @property
    def sector_id(self) -> int | None:
        """The last eight bits of the ECI: the cell of its eNodeB. None on NR-SA, as ``enb_id``."""
        return None if self.eci is None or self.rat == "NR-SA" else self.eci & 0xFF

    @property
    def empty(self) -> bool:
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


Commands = tuple[str, ...]
STANDARD_SETUP: Commands = ("AT+CEREG=2", "AT+COPS=3,2")
"""Most families' set-up: TAC and ECI in the registration, the network as MCC and MNC."""

Role = Literal["at", "at-second", "ppp", "nmea", "diagnostics", "network"]
"""Of an interface. at: the first AT port, ModemManager's; at-second: the collector's; ppp, nmea, diagnostics: what they say; network: the
data."""

EJECT = "usb_modeswitch (standard eject)"


@dataclass(frozen=True)
class KnownDevice:
    """What is known of a USB device: ids as four hexadecimal digits. ``switched_from``: products that it is before its mode switch;
    ``roles``: of its interfaces, by number, or, of class ff, by protocol (two hexadecimal digits); ``mode_switch``: how it is switched,
    for people. ``address``: of its web server as it is sold, where it is a router by itself."""

    family: str
    vendor: str
    product: str
    models: tuple[str, ...]
    switched_from: tuple[str, ...]
    roles: Mapping[int | str, Role]
    mode_switch: str | None = None
    address: str | None = None

    @property
    def has_second_port(self) -> bool:
        """Whether one AT port can be the collector's and the other ModemManager's."""
        return "at-second" in self.roles.values()


def device(
    ids: str,
    models: str,
    *,
    switched_from: str = "",
    mode_switch: str | None = None,
    address: str | None = None,
    by_protocol: Mapping[int | str, Role] | None = None,
    **numbers: int,
) -> KnownDevice:
    """A family's device: ``ids`` vendor:product, ``models`` with commas between them. Only what is known is given: interfaces by number
    (``at``, ``at_second`` …), or, of class ff, by protocol. None: the port is named in the configuration."""
    vendor, _, product = ids.partition(":")
    roles: dict[int | str, Role] = {number: cast(Role, role.replace("_", "-")) for role, number in numbers.items()}
    named = tuple(models.split(", "))
    roles |= by_protocol or {}
    return KnownDevice("", vendor, product, named, tuple(switched_from.split()), roles, mode_switch, address)


@dataclass(frozen=True)
class Driver:
    """One modem family, as a table. It holds no state: everything it knows of a moment is in the responses of one poll.

    What is asked and how it is read may differ by model, which an ``Identity`` tells; an empty one is a modem that has not
    told, for which the most common model's way is taken.

    ``name``: the module's; the tag ``driver`` of its records. ``poll``: the command lines of one poll, each an exchange of its own,
    or what tells them by model; ``setup`` likewise: sent once after echo is off and errors are numbers; a modem may refuse any of
    them. ``decode``: the reading in the responses, which may be of any of the family's commands, in any number; pure, never raises:
    what cannot be read is None. ``knows``: words of manufacturer or model by which the family is known, or a test of its own.
    ``but_not``: words by which it is not. ``reads``: questions that are not asked at a poll, as they tell nothing more, whose
    answers are read all the same: in what people send, and unasked. ``transport``: ``at``: commands over a serial port; ``http``:
    requests to the stick's own web server, written ``GET /path``; then ``fault`` says why one page reported nothing, by name
    (``login_needed``, ``busy`` …; None when it answered), and ``reboot_command`` is the ``POST /path body`` that makes it start anew.
    ``gnss``: what makes its GNSS speak NMEA on its NMEA port, sent once after ``setup`` to the one modem that is the position's source; a
    modem may refuse any of it, one that is on already does. From manuals; none was sent to real hardware by us. ``devices``: on USB.
    """

    name: str
    poll: Commands | Callable[[Identity], Commands]
    decode: Callable[[Sequence[Response], Identity], Reading]
    knows: Commands | Callable[[Identity], bool]
    but_not: tuple[str, ...] = ()
    setup: Commands | Callable[[Identity], Commands] = STANDARD_SETUP
    reads: Commands = ()
    transport: str = "at"
    fault: Callable[[Response], str | None] | None = None
    reboot_command: str | None = None
    gnss: Commands | Callable[[Identity], Commands] = ()
    devices: tuple[KnownDevice, ...] = ()

    def setup_commands(self, identity: Identity) -> Commands:
        return self.setup(identity) if callable(self.setup) else self.setup

    def poll_commands(self, identity: Identity) -> Commands:
        return self.poll(identity) if callable(self.poll) else self.poll

    def gnss_commands(self, identity: Identity) -> Commands:
        """What starts its GNSS; empty when nothing is known: then it is taken as running."""
        return self.gnss(identity) if callable(self.gnss) else self.gnss

    def matches(self, identity: Identity) -> bool:
        """Whether a modem that says this of itself is of the family."""
        known = self.knows(identity) if callable(self.knows) else identity.says(*self.knows)
        return known and not identity.says(*self.but_not)
