"""Fibocom's cell commands by model: Intel's +XMCI on L8xx, +GTCCINFO on FM350 and its kin; the rest by the standard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tandem.at.dialogue import Response
from tandem.modem.base import Commands, Driver, Identity, Reading, device
from tandem.modem.scales import (
    CESQ_NR,
    NR_MHZ,
    at,
    bandwidth_mhz,
    cell,
    code,
    decimal,
    filled,
    scaled,
    whole,
    with_secondary,
    within,
)
from tandem.modem.ts27007 import all_lines, fill, last_values, levels, rows_of

Row = Sequence[str]
SERVING_COLUMNS = 14
SINR_SCALES_AGREE_DB = 3.0
"""+CESQ is asked a few milliseconds later: a reading of the SINR agrees with it when they are this near."""


def _gtccinfo(lines: Sequence[str], identity: Identity) -> Reading:
    """LTE, NR standalone, or both (NSA): LTE's quantities are the plain ones then. Rows of service (``1,…``) stand with or without the
    command's prefix before them; neighbours (``2,…``) have 12 columns. Levels of 3G are +CESQ's, as sources differ on the columns."""
    found = [[value.strip() for value in line.removeprefix("+GTCCINFO:").split(",")] for line in lines]
    served = {row[1]: row for row in found if len(row) >= SERVING_COLUMNS and row[0] == "1"}
    base = "x" if _sixteens(identity, lines, served) else "d"
    lte = _gtccinfo_lte(served["4"], base) if "4" in served else None
    if "9" in served:
        unit_mhz = 1.0 if base == "x" else 0.2 if identity.says("FM350") else None
        nr = _nr(served["9"], base, levels(lines)["NR-SA"].sinr_db, unit_mhz)
        return nr if lte is None else with_secondary(lte, nr)
    return lte or (cell("WCDMA", "- - mcc mnc lac ci", served["2"]) if "2" in served else Reading())


def _gtccinfo_lte(row: Row, base: str) -> Reading:
    """``1,4,…,100+<band>,<bandwidth>,<sinr>,<rxlev>,…``, SINR in halves of a decibel, signed. Bandwidth in resource blocks; with a band
    below 100 it is an index."""
    label = whole(row[8]) or 0
    return cell(
        "LTE",
        f"- - mcc mnc tac eci earfcn:{base} pci:{base} - - - - rsrp_dbm:code rsrq_db:code",
        row,
        band=label - 100 if 100 < label < 200 else label if 0 < label < 100 else None,
        bandwidth_mhz=bandwidth_mhz(row[9], "blocks" if label >= 100 else "index"),
        **_halves(row[10]),
    )


def _halves(text: str) -> dict[str, Any]:
    found = code(text, -100, 100)
    return {"sinr_code": found, "sinr_db": None if found is None else found / 2}


def _nr(row: Row, base: str, ss_sinr: float | None, unit_mhz: float | None) -> Reading:
    """``1,9,…`` with the same columns; band ``50<band>``, bandwidth in ``unit_mhz``."""
    sinr, label = code(row[10], -100, 127), row[8]
    return cell(
        "NR-SA",
        f"- - mcc mnc tac eci earfcn:{base} pci:{base} - - - - rsrp_dbm:code rsrq_db:code",
        row,
        sinr_code=sinr,
        sinr_db=nr_sinr(sinr, ss_sinr),
        band=code(label[2:] if label.startswith("50") else label, 1, 512),
        bandwidth_mhz=_width(row[9], unit_mhz),
    )


def _width(text: str, unit_mhz: float | None) -> float | None:
    """A bandwidth of FR1 (3GPP TS 38.101-1 table 5.3.5-1): in fifths of a MHz on FM350, as LTE's resource blocks of 0.2 MHz are, in
    MHz on the others. Of a model that is not known (None), what only one of the two can be."""
    found = whole(text)
    units = (0.2, 1.0) if unit_mhz is None else (unit_mhz,)
    possible = [w for w in (round((found or 0) * unit, 1) for unit in units) if w in NR_MHZ and w <= 100]
    return possible[0] if len(possible) == 1 else None


def nr_sinr(found: int | None, judge: float | None) -> float | None:
    """SINR of NR in dB.

    Some firmware prints the code of the SS mapping, (v − 47)/2, other dB as it is. The SS-SINR of +CESQ (``judge``) decides:
    the nearer of the two when it is near enough, else +CESQ's own. Without it: above 40 it can only be a code, below zero
    only dB; between them it may be either, and the SINR is None.
    """
    if judge is not None:
        scales = () if found is None else (float(found), (found - 47) / 2)
        nearest = min(scales, key=lambda scale: abs(scale - judge), default=judge)
        return nearest if abs(nearest - judge) <= SINR_SCALES_AGREE_DB else judge
    if found is None or 0 <= found <= 40:
        return None
    return float(found) if found < 0 else scaled(found, CESQ_NR["sinr_db"])


def _sixteens(identity: Identity, lines: Sequence[str], served: dict[str, list[str]]) -> bool:
    """Whether channels and PCIs are hexadecimal: by model, by a heading (``NR service cell:``), which FM350 does not print, and
    where a letter is among them."""
    if identity.says("FM150", "FM160", "FM190", "FM101"):
        return True
    if not identity.says("FM350") and any("service cell:" in line.lower() for line in lines):
        return True
    return any(char in "ABCDEF" for row in served.values() for i in (6, 7) for char in at(row, i).upper())


_XMCI = {
    "4": ("LTE", "- mcc mnc tac eci pci:x earfcn:x - - rsrp_dbm:code rsrq_db:code"),
    "2": ("WCDMA", "- mcc mnc lac ci - - - - - rscp_dbm:code ecno_db:code"),
    "0": ("GSM", "- mcc mnc lac ci - rssi_dbm:code"),
}
"""By +XMCI's first column. LTE's twelfth is the SINR in halves of a decibel, signed."""


def _xmm(lines: Sequence[str]) -> Reading:
    """The serving cell of +XMCI (its levels are of the same moment), what it lacks of levels from +XCESQ, the carrier from +XLEC."""
    reading = Reading()
    for row in rows_of(lines, "+XMCI"):
        if at(row, 0) in _XMCI:
            rat, columns = _XMCI[row[0]]
            reading = cell(rat, columns, row, **(_halves(at(row, 11)) if rat == "LTE" else {}))
    reading = _levels(reading, last_values(lines, "+XCESQ"))
    if reading.rat in (None, "LTE"):
        reading = _printed(reading, last_values(lines, "+RSRP"), last_values(lines, "+RSRQ"))
    return _carrier(reading, last_values(lines, "+XLEC")) if reading.rat in (None, "LTE") else reading


def _levels(reading: Reading, row: Row) -> Reading:
    """``+XCESQ: <n>,<rxlev>,<ber>,<rscp>,<ec/n0>,<rsrq>,<rsrp>,<rssnr>``; L860 prints four more, for NR, which it has not.

    255 (99 for 2G) is not known. Where +XMCI reported no level; the technology is the one whose levels are known.
    """
    lte = cell("LTE", "- - - - - rsrq_db:code rsrp_dbm:code", row, **_halves(at(row, 7)))
    wcdma = cell("WCDMA", "- - - rscp_dbm:code ecno_db:code", row)
    gsm = cell("GSM", "- rssi_dbm:code", row)
    known = {"LTE": lte.rsrp_dbm, "WCDMA": wcdma.rscp_dbm, "GSM": gsm.rssi_dbm}
    rat = reading.rat or next((name for name, level in known.items() if level is not None), None)
    reported = next((one for one in (lte, wcdma, gsm) if one.rat == rat), None)
    mine = (reading.rsrp_code, reading.rscp_code, reading.rssi_code)
    if reported is None or mine != (None, None, None):
        return reading
    return filled(reading, reported)


def _printed(reading: Reading, power: Row, quality: Row) -> Reading:
    """``+RSRP: <pci>,<earfcn>,<rsrp>[,<further cells>]`` and ``+RSRQ`` likewise, in dBm and dB, the serving cell first: for what is
    missing, where they name the reading's own cell."""
    rows = [row for row in (power, quality) if len(row) >= 3]
    cells = {(code(at(row, 0), 0, 503), code(at(row, 1), 0, 262143)) for row in rows}
    if len(cells) != 1:
        return reading
    pci, earfcn = cells.pop()
    if None in (pci, earfcn) or reading.pci not in (None, pci) or reading.earfcn not in (None, earfcn):
        return reading
    reading = replace(reading, rat="LTE", pci=pci, earfcn=earfcn)
    if reading.rsrp_dbm is None:
        reading = replace(reading, rsrp_dbm=within(decimal(at(power, 2)), -156, -30))
    if reading.rsrq_db is None:
        reading = replace(reading, rsrq_db=within(decimal(at(quality, 2)), -50, 25))
    return reading


def _carrier(reading: Reading, row: Row) -> Reading:
    """``+XLEC: <n>,<cells>,<bandwidth index>[,<bandwidth index>…],BAND_LTE_<band>[,…]``: the first is the primary cell.

    No cells: it is not on LTE.
    """
    if code(at(row, 1), 1, 8) is None:
        return reading
    band = next((value.removeprefix("BAND_LTE_") for value in row if value.startswith("BAND_LTE_")), "")
    return replace(reading, rat="LTE", bandwidth_mhz=bandwidth_mhz(at(row, 2), "index"), band=code(band, 1, 255))


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Whichever of the two kinds of command answered; TAC, ECI and PLMN from +CEREG and +COPS where it does not tell them.

    Neither tells whether RRC is connected: a registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    reading = _gtccinfo(lines, identity)
    return fill(_xmm(lines) if reading.rat is None else reading, lines)


def _poll_commands(identity: Identity) -> Commands:
    """L8xx have Intel's commands, the others +GTCCINFO. One that has not reported its name is asked as an L8xx, the most common one."""
    if identity.says("FM350", "FM150", "FM160", "FM190", "FM101"):
        return ("AT+GTCCINFO?", "AT+CSQ;+CESQ", "AT+CEREG?;+COPS?")
    return ("AT+XMCI=1", "AT+XCESQ?", "AT+CSQ;+CEREG?;+COPS?", "AT+XLEC?")


# GNSS: Fibocom NL668/FM150/FM350 AT commands: +GTGPSPOWER, not kept over a restart; which port then speaks differs by model,
# unsure.
DRIVER = Driver(
    "fibocom",
    poll=_poll_commands,
    decode=decode,
    knows=("fibocom",),
    reads=("AT+RSRP?", "AT+RSRQ?"),
    gnss=("AT+GTGPSPOWER=1",),
    devices=(
        # In the composition with NCM (AT+GTUSBMODE=0) the AT ports are interfaces 2 and 6, of class CDC ACM (ttyACM).
        device("2cb7:0007", "L850-GL, L860-GL", at=2, at_second=6, network=0),
        # Which interfaces are the AT ports is not published: the port is named in the configuration.
        device("8087:095a", "L860-GL with Intel's id"),
        # By USB adapter, AT+GTUSBMODE=40: RNDIS on 0 and 1; which serial interfaces answer AT differs by firmware.
        device("0e8d:7126", "FM350-GL", network=0),
        # By USB adapter, AT+GTUSBMODE=41.
        device("0e8d:7127", "FM350-GL", network=0),
        # Which interfaces are the AT ports differs by AT+GTUSBMODE: the port is named in the configuration.
        device("2cb7:0104", "FM150, FM160, FM190"),
    ),
)
