"""Sierra's !GSTATUS?, !LTEINFO? and !NRINFO?, text blocks for people, with +CEREG and +COPS of the standard.

Source: AirPrime EM74xx/MC74xx and EM9 series AT command references (GSTATUS, LTEINFO, NRINFO), as quoted in public code and in
dialogues that users published. Labels vary by firmware, so they are searched for wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading, device
from tandem.modem.scales import labelled, named, plmn, technology_named, with_secondary
from tandem.modem.ts27007 import all_lines, fill

_NUMBER = r"[ \t]*([-+]?[0-9]{1,6}(?:\.[0-9]{0,4})?)(?![0-9.])"
_IDENTITY = r"[ \t]*((?:0[xX])?[0-9A-Fa-f]{1,9})(?![0-9A-Fa-f])"
_WORD = r"[ \t]*([^ \t\n:]{1,32})"
_TEXT = r"[ \t]*([^:\n]{0,80})"


class Status:
    """!GSTATUS?: labels, each with its value behind a colon, two to a line, padded with spaces or tabs."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._all = "\n".join(line for line in lines if ":" in line)

    def find(self, value: str, *labels: str) -> str:
        """What stands behind the first of the labels that has such a value; of a label that stands twice, the first; else empty."""
        for label in labels:
            # "RSRP (dBm):" is not the end of "NR5G RSRP (dBm):", nor "TAC:" of "NR5G TAC:".
            prefixed = "" if label.startswith("NR5G") else r"(?<!NR5G )(?<!SCC )"
            match = re.search(rf"(?<![A-Za-z0-9]){prefixed}{re.escape(label)}[ \t]*:{value}", self._all, re.IGNORECASE)
            if match:
                return match.group(1).strip()
        return ""

    @property
    def no_service(self) -> bool:
        """Whether it says that there is no system: ``System mode: No service``, ``NO SRV``."""
        return re.match(r"NO ?S", self.find(_TEXT, "System mode"), re.IGNORECASE) is not None


_LABEL = re.compile(r"[A-Za-z]{1,8}\Z")


def serving_row(lines: Sequence[str]) -> dict[str, str]:
    """The row under ``Serving:`` of !LTEINFO?, by its columns' names. Empty when there is none.

    The names stand behind ``Serving:`` and the values in the next line; where line ends were lost, behind the names.
    """
    for i, line in enumerate(lines):
        head, found, rest = line.partition("Serving:")
        if not found or head.strip() not in ("", "!LTEINFO:"):
            continue
        words = rest.split()
        names = []
        for word in words:
            if not _LABEL.match(word):
                break
            names.append(word)
        cells = words[len(names) :] or (lines[i + 1].split() if i + 1 < len(lines) else [])
        return dict(zip(names, cells, strict=False)) if cells and ":" not in cells[0] else {}
    return {}


_LTE = {
    "rsrp_dbm": (_NUMBER, "PCC RxM RSRP", "PCC Rx0 RSRP", "RSRP (dBm)"),
    "rsrq_db": (_NUMBER, "RSRQ (dB)", "PCC RSRQ"),
    "sinr_db": (_NUMBER, "SINR (dB)"),
    "rssi_dbm": (_NUMBER, "PCC RxM RSSI", "PCC Rx0 RSSI", "RSSI (dBm)"),
    "tac": (_IDENTITY, "TAC"),
    "eci": (_IDENTITY, "Cell ID"),
    "earfcn": (_WORD, "LTE Rx chan"),
    "band": (_WORD, "LTE band"),
    "bandwidth_mhz": (_NUMBER, "LTE bw", "LTE dl bw"),
}
"""RSRP of the primary carrier's main antenna, or the only one. Ids are hexadecimal with the decimal number in brackets behind."""
_NR = {
    "rsrp_dbm": (_NUMBER, "NR5G RSRP (dBm)"),
    "rsrq_db": (_NUMBER, "NR5G RSRQ (dB)"),
    "sinr_db": (_NUMBER, "NR5G SINR (dB)"),
    "earfcn": (_WORD, "NR5G Rx chan"),
    "band": (_WORD, "NR5G band"),
}
"""NSA has them beside LTE's; dashes are a leg that is not there."""
_STANDALONE = {
    **_NR,
    "tac": (_IDENTITY, "NR5G TAC"),
    "eci": (_IDENTITY, "NR5G Cell ID"),
    "bandwidth_mhz": (_NUMBER, "NR5G dl bw", "NR5G bw"),
}
_OLDER = {"lac": (_IDENTITY, "LAC"), "ci": (_IDENTITY, "Cell ID")}
_WCDMA = {**_OLDER, "rssi_dbm": (_NUMBER, "RX level Carrier 0 (dBm)", "RX level C0", "RxM RSSI C0", "RX level (dBm)")}
"""The received level, which is no RSCP."""


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """The serving cell. !LTEINFO's levels have a decimal and win over !GSTATUS', which are whole; its bands and channel too."""
    lines = all_lines(responses)
    status = Status(lines)
    reading = replace(_of_status(status), state=_state(status))
    if reading.rat in (None, "LTE", "NR-NSA"):
        reading = _with_lteinfo(reading, serving_row(lines))
    reading = fill(reading, lines)
    if reading.state == "unknown" and status.no_service:
        reading = replace(reading, state="no_service")
    return reading


def _of_status(status: Status) -> Reading:
    def read(rat: str, labels: Mapping[str, Sequence[str]]) -> Reading:
        return named(rat, {field: status.find(*where) for field, where in labels.items()})

    rat = technology_named(status.find(_WORD, "System mode") or status.find(_WORD, "Connectivity Mode"))
    if rat == "WCDMA":
        return read(rat, _WCDMA)
    if rat == "GSM":
        return read(rat, _OLDER)
    if rat == "NR-SA":
        mcc, _, mnc = status.find(_WORD, "NR5G MCC-MNC").partition("-")
        return replace(read(rat, _STANDALONE), plmn=plmn(mcc, mnc))
    if rat is None:
        return Reading()
    reading = _known_channel(read("LTE", _LTE))
    return with_secondary(reading, read("NR-SA", _NR)) if rat == "NR-NSA" else reading


def _state(status: Status) -> str:
    """``EMM state: Registered Normal Service`` with ``RRC state: RRC Connected`` or ``RRC Idle``; on 3G ``GMM (PS) state:
    REGISTERED`` with ``RRC State: DISCONNECTED`` or a connected mode's name (CELL_DCH, CELL_FACH, CELL_PCH, URA_PCH)."""
    service = f"{status.find(_TEXT, 'EMM state')} {status.find(_TEXT, 'GMM (PS) state')}".upper()
    if "LIMITED" in service:
        return "limited"
    if "SEARCH" in service:
        return "searching"
    if "DEREGISTERED" in service or "NO CELL" in service:
        return "no_service"
    rrc = status.find(_TEXT, "RRC state").upper()
    if "REGISTERED" not in service or not rrc:
        return "unknown"
    if "IDLE" in rrc or "DISCONNECTED" in rrc:
        return "idle"
    return "connected" if re.search(r"CONNECTED|CELL_|URA_", rrc) else "unknown"


def _known_channel(reading: Reading) -> Reading:
    """65535 is no EARFCN, and 0 none in any band but the first."""
    none = reading.earfcn == 65535 or (reading.earfcn == 0 and reading.band not in (None, 1))
    return replace(reading, earfcn=None) if none else reading


def _with_lteinfo(reading: Reading, row: dict[str, str]) -> Reading:
    """The serving row of !LTEINFO?: ``EARFCN MCC MNC TAC CID Bd D U SNR PCI RSRQ RSRP RSSI RXLV``. TAC is decimal here, CID
    hexadecimal, D and U an index of the bandwidth."""
    labels = (
        "rsrp_dbm=RSRP rsrq_db=RSRQ rssi_dbm=RSSI sinr_db=SNR mcc=MCC mnc=MNC tac:d=TAC eci=CID pci=PCI earfcn=EARFCN band=Bd"
        " bandwidth_mhz:index=D"
    )
    reported = _known_channel(labelled(None, labels, row))
    if None not in (reported.eci, reading.eci) and reported.eci != reading.eci:
        return reading  # the cell changed between the two answers
    known = {name: value for name, value in vars(reported).items() if value is not None and name != "state"}
    if reading.sinr_db is not None:
        known.pop("sinr_db", None)
    return replace(reading, **{"rat": reading.rat or "LTE", **known}) if known else reading


# Three command lines: either text block may be refused, and the standard's own commands fill what both lack.
# GNSS: Sierra MC73xx/MC74xx/EM74xx AT reference: standalone, 255 s, 30 m, 1000 = for ever, each second; some firmware wants
# $GPS_START on the NMEA port instead.
# These modems have one AT port, and ModemManager drives them by QMI or MBIM, so that it can do without.
DRIVER = Driver(
    "sierra",
    poll=("AT!GSTATUS?", "AT!LTEINFO?", "AT+CEREG?;+COPS?"),
    decode=decode,
    knows=("sierra",),
    reads=("AT!NRINFO?",),
    gnss=("AT!GPSTRACK=1,255,30,1000,1",),
    devices=(
        device("1199:9071", "EM7455, MC7455, EM7430, MC7430", nmea=2, at_second=3),
        device("1199:9079", "EM7455 (Lenovo), DW5811e", nmea=2, at_second=3),
        device("1199:9091", "EM7565", nmea=2, at_second=3),
    ),
)
