"""ZTE's +ZRSSI, +ZCELLINFO, +ZCAINFO and +ZPAS, with +CSQ, +CESQ, +CEREG and +COPS of the standard.

Source of +ZRSSI: answers of MF283+, MF286 and ZM8620 (LTE) and of MF1xx and MF6xx (3G) as published in public readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix
from tandem.modem.base import Identity, Reading
from tandem.modem.scalars import decimal, within
from tandem.modem.ts27007 import all_lines, fill, last_values, registration
from tandem.modem.zte.cells import AREA_FIRST, CELL_FIRST, Cell, carrier_info, cell_info, service


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
