"""ZTE's +ZRSSI, +ZCELLINFO, +ZCAINFO and +ZPAS, with +CSQ, +CESQ, +CEREG and +COPS of the standard.

Source of +ZRSSI: answers of MF283+, MF286 and ZM8620 (LTE) and of MF1xx and MF6xx (3G) as published in public readers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.modem.base import EJECT, Driver, Identity, Reading, device
from tandem.modem.scales import (
    area_code,
    at,
    cell,
    cell_identity,
    decimal,
    filled,
    hexadecimal,
    technology_named,
    whole,
)
from tandem.modem.ts27007 import all_lines, fill, last_values, registration

CELL_FIRST, AREA_FIRST = "cell first", "area first"
"""The two orders of +ZCELLINFO."""

_LABEL = re.compile(r"(?:tac|cellid|cid|pci|band)\s*:\s*", re.IGNORECASE)
_BAND = re.compile(r"LTE[ _]?B(?:AND)?[ _]?([0-9]{1,3})\Z", re.IGNORECASE)


def cell_info(row: Sequence[str], order: str | None, known_eci: int | None) -> Reading:
    """``+ZCELLINFO: <cell>,<pci>,LTE B<band>,<earfcn>`` (MF821, MF28x) or ``<tac>,<cell>,<pci>,LTE B<band>[,<earfcn>]``
    (GosunCn). On 2G and 3G a name stands for the band (``PGSM_900``): nothing is read then.

    ``order`` is the model's; None: it is not known. Then the cell is the one that +CEREG names (``known_eci``), else the value
    that is too great for an area; where either may be it, only what stands behind the band's name is read. Of a row that does
    not fit its order nothing is.
    """
    texts = [_LABEL.sub("", value) for value in row]
    if any(re.search("GSM|WCDMA|UMTS", text, re.IGNORECASE) for text in texts):
        return Reading()
    named = next((i for i, text in enumerate(texts) if _BAND.match(text)), None)
    first, second, third = (_number(at(texts, i)) for i in (0, 1, 2))
    order = order or _order(first, second, known_eci)
    if order == CELL_FIRST:
        eci, pci, place, tac = first, second, 2, None
    elif order == AREA_FIRST:
        tac, eci, pci, place = first, second, third, 3
    elif named is not None:
        tac, eci, pci, place = None, None, None, named
    else:
        return Reading()
    if (named is not None and named != place) or (eci is not None and eci > 0xFFFFFFF) or (tac or 0) > 0xFFFF:
        return Reading()
    label = at(texts, place)
    found = cell("LTE", "band earfcn", (label if _BAND.match(label) or whole(label) else "", at(texts, place + 1)))
    area, identity = area_code(tac), cell_identity(eci, "LTE") or None
    pci = pci if identity is not None and pci is not None and pci <= 503 else None
    return replace(found, rat=None, tac=area, eci=identity, pci=pci, earfcn=found.earfcn or None)


def _order(first: int | None, second: int | None, known_eci: int | None) -> str | None:
    if known_eci is not None and known_eci in (first, second):
        return CELL_FIRST if first == known_eci else AREA_FIRST
    large = [value is not None and value > 0xFFFF for value in (first, second)]
    if large == [True, False] and second is not None and second <= 503:
        return CELL_FIRST
    return AREA_FIRST if large == [False, True] and first is not None else None


def carrier_info(row: Sequence[str]) -> Reading:
    """``+ZCAINFO: <pci>,<band>,<tac>,<earfcn>,<bandwidth in MHz>[;<secondary carriers>]``. All zero: not on LTE."""
    first = [value.strip() for value in ",".join(row).partition(";")[0].split(",")]
    found = cell(None, "pci band tac:d earfcn bandwidth_mhz", first)
    return found if len(first) >= 5 and found.band is not None else Reading()


def _number(text: str) -> int | None:
    found = hexadecimal(text) if text[:2].lower() == "0x" else whole(text)
    return found if found is not None and 0 <= found < 0xFFFFFFFF else None


def service(row: Sequence[str]) -> tuple[str | None, str | None]:
    """``+ZPAS: "<technology>"[,"<domain>"]``: the state where it says that there is no full service, and the technology."""
    text = at(row, 0).strip().lower()
    if text in ("no service", "limited service"):
        return ("no_service" if text.startswith("no") else "limited"), None
    return None, technology_named(text)


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Levels from +ZRSSI, else +CESQ; PCI, EARFCN, band from +ZCAINFO, else +ZCELLINFO; TAC and ECI from +CEREG, else those.

    No command tells whether RRC is connected: a registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    state, technology = service(last_values(lines, "+ZPAS"))
    reading = levels(last_values(lines, "+ZRSSI"), technology)
    reading = fill(replace(reading, rat=reading.rat or technology, state=state or "unknown"), lines)
    return with_cell(reading, lines, order_of(identity))


_ZRSSI = {
    4: ("LTE", "rsrp_dbm rsrq_db rssi_dbm sinr_db"),
    3: ("WCDMA", "rssi_dbm ecno_db rscp_dbm"),
    2: ("WCDMA", "rscp_dbm ecno_db"),
    1: ("GSM", "rssi_dbm"),
}


def levels(row: Sequence[str], technology: str | None) -> Reading:
    """``+ZRSSI`` by how many values it has.

    Four: LTE's RSRP, RSRQ, RSSI, SINR, signed. Three: 3G's RSSI, Ec/N0 and RSCP, magnitudes without a sign, the latter two in
    halves, 1000 for none. Two: 3G's RSCP and Ec/N0. One: 2G's RSSI. ``technology`` other than that: nothing is read.
    """
    rat, columns = _ZRSSI.get(len(row), (None, ""))
    if len(row) == 3:
        row = [row[0], *("" if (level := decimal(text)) is None else str(level / 2) for text in row[1:])]
    signed = row if rat == "LTE" else [f"-{text.strip().lstrip('-')}" for text in row]
    reading = cell(rat, columns, signed)
    reported = any(value is not None for value in (reading.rsrp_dbm, reading.rssi_dbm, reading.rscp_dbm))
    agrees = technology in (None, reading.rat) or (technology == "NR-NSA" and reading.rat == "LTE")
    return replace(reading, rat=technology or reading.rat) if reported and agrees else Reading()


def order_of(identity: Identity) -> str | None:
    """The order of +ZCELLINFO by model: area first on GosunCn's modules, cell first on ZTE's own sticks and routers."""
    if identity.says("gosuncn", "zte welink", "ztewelink"):
        return AREA_FIRST
    return CELL_FIRST if identity.model.upper().startswith(("MF", "R11E")) else None


def with_cell(reading: Reading, lines: Sequence[str], order: str | None) -> Reading:
    """The reading with what +ZCAINFO and +ZCELLINFO tell; nothing when it is not of LTE."""
    if reading.rat not in (None, "LTE", "NR-NSA"):
        return reading
    carrier = carrier_info(last_values(lines, "+ZCAINFO"))
    row = last_values(lines, "+ZCELLINFO")
    reported = cell_info(row, order, registration(lines).eci) if row else Reading()
    if reported.eci is None and carrier.band is None and (reported.band is None or reading.state != "unknown"):
        return reading  # a channel that is searched is no cell
    reading = filled(filled(reading, Reading(rat="LTE", tac=reported.tac, eci=reported.eci)), carrier)
    return filled(reading, reported)


# Each of ZTE's own commands in a line of its own: every model refuses some of them. A device that is asked by HTTP says ``ZTE web``.
# Interface numbers as the drivers option and qmi_wwan of Linux have them; the facts name the Telewell's.
DRIVER = Driver(
    "zte",
    poll=("AT+CSQ;+CEREG?;+COPS?", "AT+CESQ", "AT+ZRSSI", "AT+ZPAS?", "AT+ZCELLINFO?", "AT+ZCAINFO?"),
    decode=decode,
    knows=("zte", "gosuncn"),
    but_not=("zte web",),
    devices=(
        # One of the three sticks sold under this name: QMI on interface 4.
        device(
            "19d2:0412",
            "Telewell TW-LTE 4G/3G USB (ZTE)",
            at=2,
            at_second=3,
            network=4,
            switched_from="0413",
            mode_switch=EJECT,
        ),
        # Category 4; QMI on interface 2. Its AT ports are not known: polled through ModemManager.
        device(
            "19d2:1428", "Telewell TW-LTE 4G/3G USB (ZTE MF833V)", network=2, switched_from="1421", mode_switch=EJECT
        ),
        # Which of the serial interfaces are AT ports differs by firmware: the port is named in the configuration.
        device("19d2:0167", "MF820D, MF821", network=4, switched_from="0166", mode_switch=EJECT),
        # The modem inside a router; its AT ports differ by firmware.
        device("19d2:1432", "ME3620, MF286, MF286A", network=3),
    ),
)
