"""Telit's #RFSTS, #MONI and #SERVINFO, the LN940's ^RFSTS? and ^CA_INFO?, with +CEREG and +COPS of the standard.

Source: Telit LE910, ME910 and LM960 AT commands reference guides (RFSTS, MONI, SERVINFO), as quoted in public code and in dialogues that
users published. #RFSTS prints the IMSI: it is used to find the column before it, and is never kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import STANDARD_SETUP, Commands, Driver, Identity, Reading, device
from tandem.modem.families.foxconn import with_ca_info
from tandem.modem.scales import (
    area_code,
    at,
    cell,
    code,
    decimal,
    fifths,
    filled,
    hexadecimal,
    labelled,
    whole,
    with_secondary,
    within,
)
from tandem.modem.ts27007 import all_lines, fill, last_values

_LABEL = re.compile(
    r"(?<![0-9A-Za-z_])([A-Za-z][A-Za-z_]{1,9}): *([-+]?[0-9A-Fa-f.]{1,12}(?:dBm?)?)(?![0-9A-Za-z])", re.IGNORECASE
)


def labels_of(line: str) -> Mapping[str, str]:
    """``RSRP:-101`` … of a #MONI line, the labels in capitals. Empty for the heading of the table form."""
    return {match.group(1).upper(): match.group(2) for match in _LABEL.finditer(line.partition(":")[2])}


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """#RFSTS, completed by #MONI where both name the same cell, and by the standard.

    What the numbers of its <MM> and <RRC> columns mean is not known for sure: a registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    reading = _rfsts(lines)
    reading = _with_moni(reading, labels_of(next((line for line in lines if prefix(line) == "#MONI"), "")))
    reported = _servinfo(last_values(lines, "#SERVINFO"))
    if reported.rat in (None, reading.rat) or reading.rat is None:
        same_area = (reading.tac or reported.tac) == (reported.tac or reading.tac)
        reading = filled(reading, reported) if same_area else reading
    return fill(with_ca_info(reading, lines), lines)


def _rfsts(lines: Sequence[str]) -> Reading:
    """The values behind ``#RFSTS:``, or in the line under ``^RFSTS:``: ``"<mcc> <mnc>",<channel>,…,<cell>,"<imsi>","<name>",…``, ids
    hexadecimal.

    The technology is told by where the levels stand: LTE has RSRP and RSSI in the third and fourth column, 3G a scrambling code and
    Ec/Io, 2G one level and then the area. The cell is before the quoted IMSI; the only other quoted columns are the network's number,
    which is the first, and its name, which is behind, and the only one that may hold a comma. Nothing quoted: no cell.
    """
    start = next((i for i, line in enumerate(lines) if prefix(line) in ("#RFSTS", "^RFSTS")), None)
    if start is None:
        return Reading()
    text = lines[start].partition(":")[2].strip() or at(lines, start + 1)
    row = values(text)
    imsi = next((i for i, raw in enumerate(text.split(",")) if i > 0 and raw.strip().startswith('"')), 0)
    mcc, _, mnc = at(row, 0).partition(" ")
    third, fourth = decimal(at(row, 2)), decimal(at(row, 3))
    if third is None or mcc == "000":
        return Reading()  # on no cell
    row = (mcc, mnc, *row[1:], at(row, imsi - 1) if imsi else "")  # the cell is the last now
    before = " -" * (len(row) - 8)
    if third < 0 and fourth is not None and fourth < 0:
        sinr = _rfsts_sinr(row[imsi + 5 : -1] if imsi else (), caret=lines[start].startswith("^"))
        band = code(at(row, imsi + 4), 1, 1024) if imsi else None
        reading = cell("LTE", f"mcc mnc earfcn rsrp_dbm rssi_dbm rsrq_db tac{before} eci", row, band=band)
        return replace(reading, sinr_code=sinr[0], sinr_db=sinr[1])
    if third >= 0 and fourth is not None and fourth <= 0:
        return cell("WCDMA", f"mcc mnc - - ecno_db rscp_dbm rssi_dbm lac{before[2:]} ci", row)
    if third < 0 and area_code(hexadecimal(at(row, 4))) is not None:
        return cell("GSM", f"mcc mnc - rssi_dbm lac{before} - - ci", row)
    return Reading()


def _rfsts_sinr(behind: Sequence[str], *, caret: bool) -> tuple[int | None, float | None]:
    """Code and dB. ``behind``: what follows the band, the SINR alone, or behind two timers (LE910Cx). It is v/5 − 20, behind timers dB.
    ^RFSTS may mean either: its number is decoded where only one of the two is possible."""
    in_db = len(behind) >= 3
    text = behind[0] if len(behind) == 1 else behind[2] if in_db else ""
    found = code(text, -40, 40) if in_db else code(text, -40 if caret else 0, 250)
    if found is None or (caret and 0 <= found <= 40):
        return found, None
    return found, float(found) if found < 0 or in_db else fifths(found)


_MONI = {
    "LTE": "mcc=CC mnc=NC rsrp_dbm=RSRP rsrq_db=RSRQ rssi_dbm=PWR tac=TAC eci=ID earfcn=EARFCN pci=PCI",
    "WCDMA": "mcc=CC mnc=NC rscp_dbm=RSCP ecno_db=ECIO rssi_dbm=PWR lac=LAC ci=ID",
    "GSM": "mcc=CC mnc=NC rssi_dbm=PWR lac=LAC ci=ID",
    "NR-SA": "rsrp_dbm=NR_RSRP rsrq_db=NR_RSRQ rssi_dbm=NR_PWR pci=NR_PCI earfcn=NR_CH band=NR_BAND bandwidth_mhz=NR_BW",
}


def _with_moni(reading: Reading, labels: Mapping[str, str]) -> Reading:
    """``#MONI: <name> RSRP:… RSRQ:… TAC:… Id:… EARFCN:… PWR:…dbm DRX:…[ pci:…]``; 3G ``PSC:… RSCP:… LAC:… Id:… EcIo:… UARFCN:…
    PWR:…``; 2G ``BSIC:… RxQual:… LAC:… Id:… ARFCN:… PWR:… dbm``. NR (FN980) alone or behind LTE's (NSA); the scale of its SINR is not
    known. The name may be ``Cc:<mcc> Nc:<mnc>``."""
    nr = labelled("NR-SA", _MONI["NR-SA"], labels) if "NR_RSRP" in labels else None
    rat = "LTE" if "RSRP" in labels else "WCDMA" if "RSCP" in labels else "GSM" if "BSIC" in labels else None
    if nr is not None and (rat != "LTE" or reading.rat not in (None, "LTE")):
        return nr if reading.rat is None else reading
    if rat is None or reading.rat not in (None, rat):
        return reading
    reported = labelled(rat, _MONI[rat], labels)
    ids = ((reading.eci, reported.eci), (reading.ci, reported.ci))
    if not any(
        None not in pair and pair[0] != pair[1] for pair in ids
    ):  # else the cell changed between the two answers
        reading = filled(reading, reported)
    return reading if nr is None else with_secondary(reading, nr)


def _servinfo(row: Sequence[str]) -> Reading:
    """``#SERVINFO: <earfcn>,<rssi>,"<name>","<mcc mnc>",<pci or eci>,<tac>,<drx>,<sd>,<rsrp>``; 3G ``<uarfcn>,<rssi>,…,<psc>,<lac>,<drx>,
    <sd>,<rscp>,<nom>,<rac>``; 2G ``<arfcn>,<rssi>,…,<bsic>,<lac>,<ta>,<gprs>[,<arfcn>,<nom>,<rac>,<pat>]``. Ids are hexadecimal."""
    if len(row) < 8:
        return Reading()
    rat = _servinfo_rat(row, within(decimal(at(row, 1)), -130, -10), decimal(at(row, 8)))
    columns = {
        "LTE": f"earfcn rssi_dbm - plmn {'eci' if len(at(row, 4)) == 7 else 'pci'} tac - - rsrp_dbm",
        "WCDMA": "- rssi_dbm - plmn - lac - - rscp_dbm",
        "GSM": "- rssi_dbm - plmn - lac",
    }.get(rat or "", "- rssi_dbm - plmn")
    return cell(rat, columns, row)


_LONGEST_TIMING_ADVANCE, _LAST_ARFCN = 63, 1023
"""Of GSM (3GPP TS 45.010 clause 5.7, 45.005 clause 2): what is longer is 3G's DRX."""

_NEAREST_DB, _FARTHEST_DB = 10, 24
"""How far RSRP lies below RSSI at the least (3 dB and 6 resource blocks), and RSCP at the most (Ec/Io)."""

_UARFCNS = (
    (712, 763), (1162, 1513), (1537, 1738), (2937, 3088), (4357, 4458), (9237, 9387), (9662, 9938), (10562, 10838),
)  # fmt: skip
"""Downlink channels of the bands of 3G that networks have: XIX, III, IV, VIII, V, IX, II, I (3GPP TS 25.101 table 5.2)."""


def _servinfo_rat(row: Sequence[str], rssi: float | None, level: float | None) -> str | None:
    """By the columns behind <sd>, then by what stands where. A row of nine is LTE's or 3G's: LTE has a cell of seven digits, a
    channel that is none of 3G's, or a level as far below RSSI as one of a resource element is; None where it may be either, or
    where nothing is reported."""
    if area_code(hexadecimal(at(row, 5))) is None and rssi is None:
        return None
    channel = whole(at(row, 0)) or 0
    if level is None or level >= 0:
        older = "GSM" if channel <= _LAST_ARFCN else None
        return "WCDMA" if (whole(at(row, 6)) or 0) > _LONGEST_TIMING_ADVANCE else older
    if len(row) > 9:
        return "WCDMA"
    if len(at(row, 4)) == 7 or not any(lowest <= channel <= highest for lowest, highest in _UARFCNS):
        return "LTE"
    below = None if rssi is None else rssi - level
    if below is None or _NEAREST_DB <= below <= _FARTHEST_DB:
        return None
    return "WCDMA" if below < _NEAREST_DB else "LTE"


def _carets(identity: Identity) -> bool:
    """The LN940 and its sisters, which Telit sold with another maker's commands."""
    return identity.model.lower().startswith(("ln940", "ln960", "t77w676"))


def _known(identity: Identity) -> bool:
    """By the manufacturer's name, but not the former Cinterion modules; the LN940's sisters by their model."""
    return (identity.says("telit") and not identity.says("cinterion")) or _carets(identity)


def _set_up(identity: Identity) -> Commands:
    """``#MONI=0``: the serving cell, in one line."""
    return STANDARD_SETUP if _carets(identity) else ("AT#MONI=0", *STANDARD_SETUP)


def _poll_commands(identity: Identity) -> Commands:
    """The maker's own, either of which may be refused, then what the standard tells beside it."""
    if _carets(identity):
        return ("AT^CA_INFO?;^RFSTS?", "AT+CEREG?;+COPS?")
    return ("AT#RFSTS", "AT#MONI", "AT+CEREG?;+COPS?")


# GNSS: Telit LE910/ME910 AT reference: $GPSNMUN=<enable>,<GGA>,<GLL>,<GSA>,<GSV>,<RMC>,<VTG>; 2 is the NMEA port on LE910C and
# LE910 V2.
# Of the LN940 the ids are, its interfaces are not.
DRIVER = Driver(
    "telit",
    setup=_set_up,
    poll=_poll_commands,
    decode=decode,
    knows=_known,
    reads=("AT#SERVINFO",),
    gnss=("AT$GPSNMUN=2,1,0,1,1,1,0", "AT$GPSP=1"),
    devices=(
        device("1bc7:1201", "LE910C4, LE920A4", at=4, at_second=5),
        device("1bc7:1040", "LM960", at=4, at_second=5),
        device("1bc7:1900", "LN940"),
        device("1bc7:1901", "LN940 (MBIM)"),
    ),
)
