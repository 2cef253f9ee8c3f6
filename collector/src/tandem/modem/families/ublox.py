"""u-blox' +UCGED in mode 2, with +CSQ, +CESQ and the registrations of the standard.

Source: u-blox LARA-R2, TOBY-L2, LARA-R6, SARA-R4 and SARA-R5 series AT commands manuals (UCGED), as quoted in public code.
``+UCGED: 2`` is followed by two lines without a prefix: the network, and the serving cell. Lines of neighbours may follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Driver, Identity, Reading, device
from tandem.modem.scales import at, cell, code, decimal, fifths
from tandem.modem.ts27007 import all_lines, best, fill

_RATS = {"2": "GSM", "3": "WCDMA", "4": "LTE", "6": "CAT-M"}
"""<rat>. 6 comes from SARA-R4 and SARA-R5, which have no other LTE than Cat-M and NB-IoT; +CEREG tells the two apart."""

_STATES = {"1": "no_service", "2": "searching", "3": "no_service"}
"""<svc>: 1 radio off, 2 searching, 3 no service, 4 registered; 0 not known."""


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """The serving cell. Whether RRC is connected is reported in numbers of unsure meaning: a registered modem's state is
    ``unknown``."""
    lines = all_lines(responses)
    reading = _cell(*_rows(lines))
    if reading.rat == "CAT-M" and best(lines, "CAT-M").rat == "NB-IOT":
        reading = replace(reading, rat="NB-IOT")
    return fill(reading, lines)


def _rows(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The two rows under ``+UCGED: 2``; empty when they are not there, or the mode is another."""
    start = next((i for i, line in enumerate(lines) if prefix(line) == "+UCGED"), None)
    if start is None or at(values(lines[start]), 0) != "2":
        return (), ()
    rows = [values(line) for line in lines[start + 1 : start + 3] if prefix(line) is None]
    return rows[0] if rows else (), rows[1] if len(rows) > 1 else ()


def _cell(network: Sequence[str], cell_row: Sequence[str]) -> Reading:
    """The network's row is ``<rat>,<svc>,<mcc>,<mnc>``, without <svc> on LARA-R6's 2G and on SARA-R422. MNC may be one digit."""
    rat = _RATS.get(at(network, 0))
    has_service = len(network) >= 4
    mcc, mnc = (at(network, 2), at(network, 3)) if has_service else (at(network, 1), at(network, 2))
    state = _STATES.get(at(network, 1), "unknown") if has_service else "unknown"
    if state != "unknown":
        return Reading(state=state)
    if rat is None:
        return Reading()
    row = (mcc, mnc, *cell_row)
    if rat == "GSM":  # −111 + v dBm
        reading = cell(rat, "mcc mnc - - ci - lac - rssi_dbm:code", row)
        return reading if at(cell_row, 0).isdecimal() else replace(reading, rssi_code=None, rssi_dbm=None)
    if rat == "WCDMA":  # which level its index is differs by model: +CESQ tells RSCP
        return cell(rat, "mcc mnc - - ci lac", row)
    return _direct(rat, row) if _is_direct(cell_row) else _indexed(rat, row)


def _is_direct(row: Sequence[str]) -> bool:
    """SARA-R422's layout has no cell identity: the physical cell is the sixth column and RSRP, in dBm, the seventh."""
    rsrp = decimal(at(row, 6))
    return rsrp is not None and rsrp < 0


def _indexed(rat: str, row: Sequence[str]) -> Reading:
    """LARA-R2, TOBY-L2, LARA-R6, SARA-R5: ``<earfcn>,<band>,<ul>,<dl>,<tac>,<cell>,<pci>,<tmsi>,<group>,<mme>,<rsrp>,<rsrq>,
    <sinr>…``. Bandwidths are resource blocks. Levels are the indexes of TS 36.133 tables 9.1.4-1 and 9.1.7-1, SINR is in dB. 65535 and 255
    are none; a cell without TAC and identity is one that is only heard of.
    """
    rsrp, rsrq = code(at(row, 12), -17, 97), code(at(row, 13), -30, 46)
    reading = cell(rat, "mcc mnc earfcn band - bandwidth_mhz:blocks tac eci pci - - - - - sinr_db", row)
    return replace(
        reading,
        rsrp_code=rsrp,
        rsrp_dbm=None if rsrp is None else rsrp - (141.0 if rsrp >= 0 else 140.0),
        rsrq_code=rsrq,
        rsrq_db=None if rsrq is None else (rsrq - (40 if rsrq >= 0 else 39)) / 2,
        sinr_db=reading.sinr_db if rsrp is not None else None,
        earfcn=None if reading.earfcn == 65535 else reading.earfcn,
        band=None if reading.band == 255 else reading.band,
    )


def _direct(rat: str, row: Sequence[str]) -> Reading:
    """SARA-R422: ``<earfcn>,<band>,<ul>,<dl>,<tac>,<pci>,<rsrp>,<rsrq>,<sinr>,…``: dBm, dB, SINR v/5 − 20. The unit of its bandwidths is
    not known."""
    sinr = code(at(row, 10), 0, 250)
    reading = cell(rat, "mcc mnc earfcn band - - tac pci rsrp_dbm rsrq_db", row, sinr_code=sinr, sinr_db=fifths(sinr))
    return replace(reading, band=None if reading.band == 255 else reading.band)


# The serving cell in +UCGED's mode 2, and the standard's own commands for the levels of 3G, state and network.
# TtyACM ports have a control and a data interface each: the number is the control interface's. : LARA-R2 has ttyACM0 to 2.
DRIVER = Driver(
    "ublox",
    setup=("AT+UCGED=2", "AT+CEREG=2", "AT+CREG=2", "AT+COPS=3,2"),
    poll=("AT+UCGED?", "AT+CSQ;+CESQ", "AT+CEREG?;+COPS?;+CREG?"),
    decode=decode,
    knows=("u-blox", "ublox"),
    devices=(
        # ttyACM0 to ttyACM2; that their control interfaces are 0, 2 and 4 follows from CDC-ACM's two interfaces a port
        device("1546:110a", "LARA-R2", at=0, at_second=2),
        # the id as AT+UUSBCONF? names it; the ports as the bench presents them (firmware/bench, gadget), not seen on a modem
        device("1546:1143", "TOBY-L2 with CDC-ECM (AT+UUSBCONF=2)", at=0, at_second=2),
    ),
)
