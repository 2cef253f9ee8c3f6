"""Telit's #RFSTS, #MONI and #SERVINFO, the LN940's ^RFSTS? and ^CA_INFO?, with +CEREG and +COPS of the standard.

Source: Telit LE910, ME910 and LM960 AT commands reference guides (RFSTS, MONI, SERVINFO), as quoted in public code and in dialogues that
users published. #RFSTS prints the IMSI: it is used to find the column before it, and is never kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import STANDARD_SETUP, Commands, Driver, Identity, Reading
from tandem.modem.families.foxconn import with_ca_info
from tandem.modem.scales import (
    area_code,
    at,
    cell_identity,
    code,
    decimal,
    hexadecimal,
    plmn,
    whole,
    with_secondary,
    within,
)
from tandem.modem.ts27007 import all_lines, fill, last_values


class Row:
    """The columns of an RFSTS line. ``caret``: of ^RFSTS."""

    def __init__(self, text: str, caret: bool = False) -> None:
        self.caret = caret
        self.values = values(text) if text.strip() else ()
        quoted = [i for i, raw in enumerate(_raw(text)) if raw.strip().startswith('"')]
        behind = [i for i in quoted if i > 0]
        self.imsi_column = behind[0] if behind else None
        """Where the quoted IMSI stands; the cell is before it. The only other quoted columns are the network's number, which is
        the first, and its name, which is behind. None when nothing is quoted."""

    def at(self, index: int) -> str:
        """The value of a column, unquoted; empty when there is none."""
        return self.values[index] if 0 <= index < len(self.values) else ""


def _raw(text: str) -> list[str]:
    """The columns with their quotes. No quoted one holds a comma but the last, a name."""
    return text.split(",")


_LABEL = re.compile(
    r"(?<![0-9A-Za-z_])([A-Za-z][A-Za-z_]{1,9}): *([-+]?[0-9A-Fa-f.]{1,12}(?:dBm?)?)(?![0-9A-Za-z])", re.IGNORECASE
)


def labelled(line: str) -> Mapping[str, str]:
    """``RSRP:-101`` … of a #MONI line, the labels in capitals. Empty for the heading of the table form."""
    return {match.group(1).upper(): match.group(2) for match in _LABEL.finditer(line.partition(":")[2])}


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """#RFSTS, completed by #MONI where both name the same cell, and by the standard.

    What the numbers of its <MM> and <RRC> columns mean is not known for sure: a registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    reading = _rfsts(_row(lines))
    reading = _with_moni(reading, next((line for line in lines if prefix(line) == "#MONI"), ""))
    reading = _missing(reading, _servinfo(last_values(lines, "#SERVINFO")))
    return fill(with_ca_info(reading, lines), lines)


def _row(lines: Sequence[str]) -> Row:
    """The values behind ``#RFSTS:``, or in the line under ``^RFSTS:``."""
    for i, line in enumerate(lines):
        if prefix(line) in ("#RFSTS", "^RFSTS"):
            rest = line.partition(":")[2].strip()
            under = lines[i + 1] if i + 1 < len(lines) else ""
            return Row(rest or under, caret=line.startswith("^"))
    return Row("")


def _rfsts(row: Row) -> Reading:
    """The technology is told by where the levels stand: LTE has RSRP and RSSI in the third and fourth column, 3G a scrambling
    code and Ec/Io, 2G one level and then the area."""
    mcc, _, mnc = row.at(0).partition(" ")
    network = plmn(mcc, mnc)
    third, fourth = decimal(row.at(2)), decimal(row.at(3))
    if third is None or mcc == "000":
        return Reading()  # on no cell
    if third < 0 and fourth is not None and fourth < 0:
        return _lte(replace(Reading(rat="LTE"), plmn=network), row)
    if third >= 0 and fourth is not None and fourth <= 0:
        return _wcdma(replace(Reading(rat="WCDMA"), plmn=network), row)
    if third < 0 and area_code(hexadecimal(row.at(3))) is not None:
        return _gsm(replace(Reading(rat="GSM"), plmn=network), row)
    return Reading()


def _lte(reading: Reading, row: Row) -> Reading:
    """``"<mcc> <mnc>",<earfcn>,<rsrp>,<rssi>,<rsrq>,<tac>,<rac>,[<txpwr>,]<drx>,<mm>,<rrc>,<cid>,"<imsi>","<name>",<sd>,<abnd>
    [,<t3402>,<t3412>][,<sinr>]``; ids are hexadecimal. SINR is v/5 − 20, behind timers (LE910Cx) dB; in which scale ^RFSTS has it
    is not known."""
    imsi = row.imsi_column
    behind = [] if imsi is None else row.values[imsi + 4 :]
    in_db = len(behind) >= 3
    sinr = behind[0] if len(behind) == 1 else behind[2] if in_db else ""
    sinr_code = code(sinr, -40, 40) if in_db else code(sinr, -40 if row.caret else 0, 250)
    return replace(
        reading,
        rsrp_dbm=within(decimal(row.at(2)), -156, -30),
        rssi_dbm=within(decimal(row.at(3)), -130, -10),
        rsrq_db=within(decimal(row.at(4)), -50, 25),
        sinr_code=sinr_code,
        sinr_db=_sinr_db(sinr_code, row.caret, in_db),
        tac=area_code(hexadecimal(row.at(5))),
        eci=None if imsi is None else cell_identity(hexadecimal(row.at(imsi - 1)), "LTE"),
        earfcn=code(row.at(1), 0, 262143),
        band=None if imsi is None else code(row.at(imsi + 3), 1, 1024),
    )


def _sinr_db(found: int | None, caret: bool, in_db: bool) -> float | None:
    """v/5 − 20, or dB. ^RFSTS may mean either: its number is decoded where only one of the two is possible."""
    if found is None or (caret and 0 <= found <= 40):
        return None
    return float(found) if found < 0 or in_db else round(found / 5 - 20, 1)


def _wcdma(reading: Reading, row: Row) -> Reading:
    """``"<mcc> <mnc>",<uarfcn>,<psc>,<ec/io>,<rscp>,<rssi>,<lac>,<rac>,<txpwr>,<drx>,<mm>,<rrc>,<nom>,<bler>,<cid>,"<imsi>"…``"""
    imsi = row.imsi_column
    return replace(
        reading,
        ecno_db=within(decimal(row.at(3)), -32, 0),
        rscp_dbm=within(decimal(row.at(4)), -125, -20),
        rssi_dbm=within(decimal(row.at(5)), -130, -10),
        lac=area_code(hexadecimal(row.at(6))),
        ci=None if imsi is None else cell_identity(hexadecimal(row.at(imsi - 1)), "WCDMA"),
    )


def _gsm(reading: Reading, row: Row) -> Reading:
    """``"<mcc> <mnc>",<arfcn>,<rssi>,<lac>,<rac>,<txpwr>,<mm>,<rr>,<nom>,<cid>,"<imsi>"…``"""
    imsi = row.imsi_column
    return replace(
        reading,
        rssi_dbm=within(decimal(row.at(2)), -120, -20),
        lac=area_code(hexadecimal(row.at(3))),
        ci=None if imsi is None else cell_identity(hexadecimal(row.at(imsi - 1)), "GSM"),
    )


def _with_moni(reading: Reading, line: str) -> Reading:
    """``#MONI: <name> RSRP:… RSRQ:… TAC:… Id:… EARFCN:… PWR:…dbm DRX:…[ pci:…]``; 3G ``PSC:… RSCP:… LAC:… Id:… EcIo:… UARFCN:…
    PWR:…``; 2G ``BSIC:… RxQual:… LAC:… Id:… ARFCN:… PWR:… dbm``. NR (FN980) ``NR_BAND:… NR_BW:<MHz> NR_CH:… NR_PWR:… NR_RSRP:… NR_RSRQ:…
    NR_PCI:… NR_SINR:…``, alone or behind LTE's (NSA); the scale of its SINR is not known. The name may be ``Cc:<mcc> Nc:<mnc>``. Ids
    are hexadecimal."""
    labels = labelled(line)
    if "NR_RSRP" in labels:
        if "RSRP" in labels and reading.rat in (None, "LTE"):
            return with_secondary(_with_moni(reading, re.sub(r"NR_\w+:\S+", "", line)), _nr(labels))
        return _nr(labels) if reading.rat is None else reading
    rat = "LTE" if "RSRP" in labels else "WCDMA" if "RSCP" in labels else "GSM" if "BSIC" in labels else None
    if rat is None or reading.rat not in (None, rat):
        return reading
    cell = cell_identity(hexadecimal(labels.get("ID", "")), rat)
    mine = reading.ci if rat in ("GSM", "WCDMA") else reading.eci
    if None not in (cell, mine) and cell != mine:
        return reading  # the cell changed between the two answers
    area = area_code(hexadecimal(labels.get("TAC" if rat == "LTE" else "LAC", "")))
    older = rat in ("GSM", "WCDMA")
    told: dict[str, Any] = {
        "rat": rat,
        "plmn": plmn(labels.get("CC", ""), labels.get("NC", "")),
        "rsrp_dbm": within(_number(labels.get("RSRP")), -156, -30),
        "rsrq_db": within(_number(labels.get("RSRQ")), -50, 25),
        "rscp_dbm": within(_number(labels.get("RSCP")), -125, -20),
        "ecno_db": within(_number(labels.get("ECIO")), -32, 0),
        "rssi_dbm": within(_number(labels.get("PWR")), -130, -10),
        "tac": None if older else area,
        "eci": None if older else cell,
        "lac": area if older else None,
        "ci": cell if older else None,
        "earfcn": code(labels.get("EARFCN", ""), 0, 262143),
        "pci": None if older else code(labels.get("PCI", ""), 0, 503),
    }
    missing = {name: value for name, value in told.items() if value is not None and getattr(reading, name) is None}
    return replace(reading, **missing)


def _nr(labels: Mapping[str, str]) -> Reading:
    width = within(_number(labels.get("NR_BW")), 5, 400)
    return Reading(
        rat="NR-SA",
        rsrp_dbm=within(_number(labels.get("NR_RSRP")), -157, -30),
        rsrq_db=within(_number(labels.get("NR_RSRQ")), -50, 25),
        rssi_dbm=within(_number(labels.get("NR_PWR")), -130, -10),
        pci=code(labels.get("NR_PCI", ""), 0, 1007),
        earfcn=code(labels.get("NR_CH", ""), 1, 3279165),
        band=code(labels.get("NR_BAND", ""), 1, 512),
        bandwidth_mhz=width,
    )


def _servinfo(row: Sequence[str]) -> Reading:
    """``#SERVINFO: <earfcn>,<rssi>,"<name>","<mcc mnc>",<pci or eci>,<tac>,<drx>,<sd>,<rsrp>``; 3G ``<uarfcn>,<rssi>,…,<psc>,<lac>,<drx>,
    <sd>,<rscp>,<nom>,<rac>``; 2G ``<arfcn>,<rssi>,…,<bsic>,<lac>,<ta>,<gprs>[,<arfcn>,<nom>,<rac>,<pat>]``. Ids are hexadecimal."""
    if len(row) < 8:
        return Reading()
    level, network = decimal(at(row, 8)), at(row, 3)
    rssi, area = within(decimal(at(row, 1)), -130, -10), area_code(hexadecimal(at(row, 5)))
    rat = _servinfo_rat(row, rssi, level)
    reading = Reading(rat=rat, plmn=plmn(network[:3], network[3:]), rssi_dbm=rssi)
    if rat == "LTE":
        pci, earfcn = code(at(row, 4), 0, 503), code(at(row, 0), 0, 262143)
        eci = cell_identity(hexadecimal(at(row, 4)), "LTE") if len(at(row, 4)) == 7 else None
        pci = pci if eci is None else None
        return replace(reading, rsrp_dbm=within(level, -156, -30), tac=area, pci=pci, eci=eci, earfcn=earfcn)
    if rat is None:
        return reading
    return replace(reading, lac=area, rscp_dbm=within(level, -125, -20) if rat == "WCDMA" else None)


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
    where nothing is told."""
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


def _missing(reading: Reading, told: Reading) -> Reading:
    """The reading with what it lacks of ``told``, when both are of one technology and area."""
    other_rat = None not in (reading.rat, told.rat) and reading.rat != told.rat
    if other_rat or (reading.tac or told.tac) != (told.tac or reading.tac):
        return reading
    known = {name: value for name, value in vars(told).items() if value is not None and getattr(reading, name) is None}
    return replace(reading, **known)


def _number(text: str | None) -> float | None:
    """A number with its unit stuck to it: ``-82dbm``."""
    return decimal(re.sub(r"(?i)dbm?\Z", "", text)) if text else None


def _carets(identity: Identity) -> bool:
    """The LN940 and its sisters, which Telit sold with another maker's commands."""
    return identity.model.lower().startswith(("ln940", "ln960", "t77w676"))


def _known(identity: Identity) -> bool:
    """By the manufacturer's name, but not the former Cinterion modules; the LN940's sisters by their model."""
    return (identity.says("telit") and not identity.says("cinterion")) or _carets(identity)


def _set_up(identity: Identity) -> Commands:
    """``#MONI=0``: the serving cell, in one line."""
    return STANDARD_SETUP if _carets(identity) else ("AT#MONI=0", *STANDARD_SETUP)


def _asked(identity: Identity) -> Commands:
    """The maker's own, either of which may be refused, then what the standard tells beside it."""
    if _carets(identity):
        return ("AT^CA_INFO?;^RFSTS?", "AT+CEREG?;+COPS?")
    return ("AT#RFSTS", "AT#MONI", "AT+CEREG?;+COPS?")


DRIVER = Driver("telit", setup=_set_up, poll=_asked, decode=decode, knows=_known, reads=("AT#SERVINFO",))
