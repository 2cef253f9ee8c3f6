"""ZTE's +ZRSSI, +ZCELLINFO, +ZCAINFO and +ZPAS, with +CSQ, +CESQ, +CEREG and +COPS of the standard.

Source of +ZRSSI: answers of MF283+, MF286 and ZM8620 (LTE) and of MF1xx and MF6xx (3G) as published in public readers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.scales import at, code, decimal, hexadecimal, whole, within
from tandem.modem.ts27007 import all_lines, fill, last_values, registration

CELL_FIRST, AREA_FIRST = "cell first", "area first"
"""The two orders of +ZCELLINFO."""

_LABEL = re.compile(r"(?:tac|cellid|cid|pci|band)\s*:\s*", re.IGNORECASE)
_BAND = re.compile(r"LTE[ _]?B(?:AND)?[ _]?([0-9]{1,3})\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Cell:
    """What +ZCELLINFO and +ZCAINFO tell of the serving cell."""

    tac: int | None = None
    eci: int | None = None
    pci: int | None = None
    band: int | None = None
    earfcn: int | None = None
    bandwidth_mhz: float | None = None


def cell_info(row: Sequence[str], order: str | None, known_eci: int | None) -> Cell:
    """``+ZCELLINFO: <cell>,<pci>,LTE B<band>,<earfcn>`` (MF821, MF28x) or ``<tac>,<cell>,<pci>,LTE B<band>[,<earfcn>]``
    (GosunCn). On 2G and 3G a name stands for the band (``PGSM_900``): nothing is read then.

    ``order`` is the model's; None: it is not known. Then the cell is the one that +CEREG names (``known_eci``), else the value
    that is too great for an area; where either may be it, only what stands behind the band's name is read. Of a row that does
    not fit its order nothing is.
    """
    texts = [_LABEL.sub("", value) for value in row]
    if any(re.search("GSM|WCDMA|UMTS", text, re.IGNORECASE) for text in texts):
        return Cell()
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
        return Cell()
    if (named is not None and named != place) or (eci is not None and eci > 0xFFFFFFF) or (tac or 0) > 0xFFFF:
        return Cell()
    label = _BAND.match(at(texts, place))
    return Cell(
        tac if tac not in (0, 0xFFFE, 0xFFFF) else None,
        eci if eci not in (0, 0xFFFFFFF) else None,
        pci if pci is not None and pci <= 503 and eci not in (None, 0, 0xFFFFFFF) else None,
        code(label.group(1) if label else at(texts, place), 1, 255),
        code(at(texts, place + 1), 1, 262143),
    )


def _order(first: int | None, second: int | None, known_eci: int | None) -> str | None:
    if known_eci is not None and known_eci in (first, second):
        return CELL_FIRST if first == known_eci else AREA_FIRST
    large = [value is not None and value > 0xFFFF for value in (first, second)]
    if large == [True, False] and second is not None and second <= 503:
        return CELL_FIRST
    return AREA_FIRST if large == [False, True] and first is not None else None


def carrier_info(row: Sequence[str]) -> Cell:
    """``+ZCAINFO: <pci>,<band>,<tac>,<earfcn>,<bandwidth in MHz>[;<secondary carriers>]``. All zero: not on LTE."""
    first = [value.strip() for value in ",".join(row).partition(";")[0].split(",")]
    band = code(at(first, 1), 1, 255)
    if band is None or len(first) < 5:
        return Cell()
    area = code(at(first, 2), 1, 0xFFFD)
    bandwidth = code(at(first, 4), 1, 20)
    return Cell(
        area, None, code(at(first, 0), 0, 503), band, code(at(first, 3), 0, 262143),
        None if bandwidth is None else {1: 1.4}.get(bandwidth, float(bandwidth)),
    )  # fmt: skip


def _number(text: str) -> int | None:
    found = hexadecimal(text) if text[:2].lower() == "0x" else whole(text)
    return found if found is not None and 0 <= found < 0xFFFFFFFF else None


def service(row: Sequence[str]) -> tuple[str | None, str | None]:
    """``+ZPAS: "<technology>"[,"<domain>"]``: the state where it says that there is no full service, and the technology."""
    text = at(row, 0).strip().lower()
    if text in ("no service", "limited service"):
        return ("no_service" if text.startswith("no") else "limited"), None
    for words, rat in (
        (("nr5g-nsa", "nsa", "endc", "en-dc"), "NR-NSA"),
        (("nr5g-sa", "nr5g", "sa"), "NR-SA"),
        (("lte", "4g", "lte-a", "lte+"), "LTE"),
        (("umts", "wcdma", "hsdpa", "hsupa", "hspa", "hspa+", "dc-hspa+", "3g", "hsdpa/hsupa"), "WCDMA"),
        (("gsm", "gprs", "edge", "gprs/edge", "2g"), "GSM"),
    ):
        if text in words:
            return None, rat
    return None, None


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Levels from +ZRSSI, else +CESQ; PCI, EARFCN, band from +ZCAINFO, else +ZCELLINFO; TAC and ECI from +CEREG, else those.

    No command tells whether RRC is connected: a registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    state, technology = service(last_values(lines, "+ZPAS"))
    reading = levels(last_values(lines, "+ZRSSI"), technology)
    reading = fill(replace(reading, rat=reading.rat or technology, state=state or "unknown"), lines)
    return with_cell(reading, lines, order_of(identity))


def levels(row: Sequence[str], technology: str | None) -> Reading:
    """``+ZRSSI`` by how many values it has.

    Four: LTE's RSRP, RSRQ, RSSI, SINR, signed. Three: 3G's RSSI, Ec/N0 and RSCP, magnitudes without a sign, the latter two in
    halves, 1000 for none. Two: 3G's RSCP and Ec/N0. One: 2G's RSSI. ``technology`` other than that: nothing is read.
    """
    found = [decimal(value) for value in row]
    if len(found) == 4:
        reading = Reading(
            rat="LTE",
            rsrp_dbm=within(found[0], -156, -30),
            rsrq_db=within(found[1], -50, 0),
            rssi_dbm=within(found[2], -130, -10),
            sinr_db=within(found[3], -40, 60),
        )
    elif len(found) == 3:
        reading = Reading(
            rat="WCDMA",
            rssi_dbm=within(_below_zero(found[0]), -130, -10),
            ecno_db=within(_below_zero(found[1], 2), -60, 0),
            rscp_dbm=within(_below_zero(found[2], 2), -140, -10),
        )
    elif len(found) == 2:
        reading = Reading(
            rat="WCDMA",
            rscp_dbm=within(_below_zero(found[0]), -140, -10),
            ecno_db=within(_below_zero(found[1]), -60, 0),
        )
    elif len(found) == 1:
        reading = Reading(rat="GSM", rssi_dbm=within(_below_zero(found[0]), -130, -10))
    else:
        return Reading()
    told = any(value is not None for value in (reading.rsrp_dbm, reading.rssi_dbm, reading.rscp_dbm))
    agrees = technology in (None, reading.rat) or (technology == "NR-NSA" and reading.rat == "LTE")
    return replace(reading, rat=technology or reading.rat) if told and agrees else Reading()


def _below_zero(magnitude: float | None, divisor: int = 1) -> float | None:
    """A level that is printed without its sign by some and with it by others."""
    return None if magnitude is None else -abs(magnitude) / divisor


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
    row = last_values(lines, "+ZCELLINFO") if any(prefix(line) == "+ZCELLINFO" for line in lines) else ()
    cell = cell_info(row, order, registration(lines).eci)
    if carrier == Cell() and cell == Cell():
        return reading
    if cell.eci is None and carrier.band is None and (cell.band is None or reading.state != "unknown"):
        return reading  # a channel that is searched is no cell
    return replace(
        reading,
        rat=reading.rat or "LTE",
        tac=_first(reading.tac, cell.tac, carrier.tac),
        eci=_first(reading.eci, cell.eci),
        pci=_first(carrier.pci, cell.pci),
        band=_first(carrier.band, cell.band),
        earfcn=_first(carrier.earfcn, cell.earfcn),
        bandwidth_mhz=carrier.bandwidth_mhz,
    )


def _first(*found: int | None) -> int | None:
    return next((one for one in found if one is not None), None)


# Each of ZTE's own commands in a line of its own: every model refuses some of them. A device that is asked by HTTP says ``ZTE web``.
DRIVER = Driver(
    "zte",
    poll=("AT+CSQ;+CEREG?;+COPS?", "AT+CESQ", "AT+ZRSSI", "AT+ZPAS?", "AT+ZCELLINFO?", "AT+ZCAINFO?"),
    decode=decode,
    knows=("zte", "gosuncn"),
    but_not=("zte web",),
)
