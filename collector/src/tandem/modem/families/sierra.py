"""Sierra's !GSTATUS?, !LTEINFO? and !NRINFO?, text blocks for people, with +CEREG and +COPS of the standard.

Source: AirPrime EM74xx/MC74xx and EM9 series AT command references (GSTATUS, LTEINFO, NRINFO), as quoted in public code and in
dialogues that users published. Labels vary by firmware, so they are searched for wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.scales import (
    area_code,
    cell_identity,
    code,
    decimal,
    hexadecimal,
    lte_bandwidth_mhz,
    plmn,
    whole,
    within,
)
from tandem.modem.ts27007 import all_lines, fill

_NUMBER = r"[ \t]*([-+]?[0-9]{1,6}(?:\.[0-9]{0,4})?)(?![0-9.])"
_IDENTITY = r"[ \t]*(?:0[xX])?([0-9A-Fa-f]{1,9})(?![0-9A-Fa-f])"


class Status:
    """!GSTATUS?: labels, each with its value behind a colon, two to a line, padded with spaces or tabs."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._all = "\n".join(line for line in lines if ":" in line)

    def _find(self, label: str, value: str) -> re.Match[str] | None:
        # "RSRP (dBm):" is not the end of "NR5G RSRP (dBm):", nor "TAC:" of "NR5G TAC:".
        prefixed = "" if label.startswith("NR5G") else r"(?<!NR5G )(?<!SCC )"
        return re.search(rf"(?<![A-Za-z0-9]){prefixed}{re.escape(label)}[ \t]*:{value}", self._all, re.IGNORECASE)

    def number(self, *labels: str) -> float | None:
        """The number behind the first of the labels that has one; of a label that stands twice, the first."""
        found = (self._find(label, _NUMBER) for label in labels)
        return next((decimal(match.group(1)) for match in found if match), None)

    def word(self, label: str) -> str | None:
        """The one word behind the label."""
        match = self._find(label, r"[ \t]*([^ \t\n:]{1,32})")
        return match.group(1) if match else None

    def text(self, label: str) -> str:
        """What stands behind the label until the line ends or the next label begins; empty when there is no such label."""
        match = self._find(label, r"[ \t]*([^:\n]{0,80})")
        return match.group(1).strip() if match else ""

    def identity(self, label: str) -> int | None:
        """A hexadecimal number; its decimal in brackets behind is not needed."""
        match = self._find(label, _IDENTITY)
        return hexadecimal(match.group(1)) if match else None

    @property
    def no_service(self) -> bool:
        """Whether it says that there is no system: ``System mode: No service``, ``NO SRV``."""
        return re.match(r"NO ?S", self.text("System mode"), re.IGNORECASE) is not None


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


_RATS = {
    "LTE": "LTE", "ENDC": "NR-NSA", "NSA": "NR-NSA", "NR5G": "NR-SA", "SA": "NR-SA",
    "WCDMA": "WCDMA", "UMTS": "WCDMA", "GSM": "GSM",
}  # fmt: skip


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """The serving cell. !LTEINFO's levels have a decimal and win over !GSTATUS', which are whole; its bands and channel too."""
    lines = all_lines(responses)
    status = Status(lines)
    reading = _of_status(status)
    if reading.rat in (None, "LTE", "NR-NSA"):
        reading = _with_lteinfo(reading, serving_row(lines))
    reading = fill(reading, lines)
    if reading.state == "unknown" and status.no_service:
        reading = replace(reading, state="no_service")
    return reading


def _of_status(status: Status) -> Reading:
    rat = _RATS.get((status.word("System mode") or status.word("Connectivity Mode") or "").upper())
    reading = Reading(rat=rat, state=_state(status))
    if rat == "WCDMA":
        return _wcdma(reading, status)
    if rat == "GSM":
        return _with_older_ids(reading, status)
    if rat == "NR-SA":
        return _standalone(reading, status)
    if rat in ("LTE", "NR-NSA"):
        reading = _lte(reading, status)
    if rat == "NR-NSA":
        reading = _with_secondary(reading, status)
    return reading


def _state(status: Status) -> str:
    """``EMM state: Registered Normal Service`` with ``RRC state: RRC Connected`` or ``RRC Idle``; on 3G ``GMM (PS) state:
    REGISTERED`` with ``RRC State: DISCONNECTED`` or a connected mode's name (CELL_DCH, CELL_FACH, CELL_PCH, URA_PCH)."""
    service = f"{status.text('EMM state')} {status.text('GMM (PS) state')}".upper()
    if "LIMITED" in service:
        return "limited"
    if "SEARCH" in service:
        return "searching"
    if "DEREGISTERED" in service or "NO CELL" in service:
        return "no_service"
    rrc = status.text("RRC state").upper()
    if "REGISTERED" not in service or not rrc:
        return "unknown"
    if "IDLE" in rrc or "DISCONNECTED" in rrc:
        return "idle"
    return "connected" if re.search(r"CONNECTED|CELL_|URA_", rrc) else "unknown"


def _lte(reading: Reading, status: Status) -> Reading:
    """RSRP of the primary carrier's main antenna: ``PCC RxM RSRP`` (``PCC Rx0 RSRP``), the ``RSRP (dBm)`` behind ``PCC RxM
    RSSI``, or the only one. Ids are hexadecimal with the decimal number in brackets behind; a cell of zeros is none."""
    band = _band(status.word("LTE band"))
    return replace(
        reading,
        rsrp_dbm=within(status.number("PCC RxM RSRP", "PCC Rx0 RSRP", "RSRP (dBm)"), -156, -30),
        rsrq_db=within(status.number("RSRQ (dB)", "PCC RSRQ"), -50, 25),
        sinr_db=within(status.number("SINR (dB)"), -40, 60),
        rssi_dbm=within(status.number("PCC RxM RSSI", "PCC Rx0 RSSI", "RSSI (dBm)"), -130, -10),
        tac=area_code(status.identity("TAC")),
        eci=_present(cell_identity(status.identity("Cell ID"), "LTE")),
        earfcn=_channel(status.word("LTE Rx chan"), band),
        band=band,
        bandwidth_mhz=within(status.number("LTE bw", "LTE dl bw"), 1.4, 20),
    )


def _with_secondary(reading: Reading, status: Status) -> Reading:
    """``NR5G …`` labels beside LTE's. Dashes are a leg that is not there."""
    return replace(
        reading,
        nr_rsrp_dbm=within(status.number("NR5G RSRP (dBm)"), -157, -30),
        nr_rsrq_db=within(status.number("NR5G RSRQ (dB)"), -50, 25),
        nr_sinr_db=within(status.number("NR5G SINR (dB)"), -40, 60),
        nr_arfcn=code(status.word("NR5G Rx chan") or "", 1, 3279165),
        nr_band=_band(status.word("NR5G band")),
    )


def _standalone(reading: Reading, status: Status) -> Reading:
    """The same labels where there is no LTE."""
    mcc, _, mnc = (status.word("NR5G MCC-MNC") or "").partition("-")
    return replace(
        reading,
        rsrp_dbm=within(status.number("NR5G RSRP (dBm)"), -157, -30),
        rsrq_db=within(status.number("NR5G RSRQ (dB)"), -50, 25),
        sinr_db=within(status.number("NR5G SINR (dB)"), -40, 60),
        plmn=plmn(mcc, mnc),
        tac=area_code(status.identity("NR5G TAC"), 0xFFFFFF),
        eci=_present(cell_identity(status.identity("NR5G Cell ID"), "NR-SA")),
        earfcn=code(status.word("NR5G Rx chan") or "", 1, 3279165),
        band=_band(status.word("NR5G band")),
        bandwidth_mhz=within(status.number("NR5G dl bw", "NR5G bw"), 5, 400),
    )


def _wcdma(reading: Reading, status: Status) -> Reading:
    """``RX level Carrier 0 (dBm)``, ``RX level C0`` or ``RxM RSSI C0``: the received level, which is no RSCP."""
    level = status.number("RX level Carrier 0 (dBm)", "RX level C0", "RxM RSSI C0", "RX level (dBm)")
    return _with_older_ids(replace(reading, rssi_dbm=within(level, -130, -10)), status)


def _with_older_ids(reading: Reading, status: Status) -> Reading:
    """LAC and CI of 2G and 3G."""
    ci = _present(cell_identity(status.identity("Cell ID"), reading.rat))
    return replace(reading, lac=area_code(status.identity("LAC")), ci=ci)


def _with_lteinfo(reading: Reading, row: dict[str, str]) -> Reading:
    """The serving row of !LTEINFO?: ``EARFCN MCC MNC TAC CID Bd D U SNR PCI RSRQ RSRP RSSI RXLV``. TAC is decimal here, CID
    hexadecimal, D and U an index of the bandwidth."""
    if not row:
        return reading
    eci = _present(cell_identity(hexadecimal(row.get("CID", "")), "LTE"))
    if None not in (eci, reading.eci) and eci != reading.eci:
        return reading  # the cell changed between the two answers
    band = code(row.get("Bd", ""), 1, 1024)
    told: dict[str, Any] = {
        "rsrp_dbm": within(decimal(row.get("RSRP", "")), -156, -30),
        "rsrq_db": within(decimal(row.get("RSRQ", "")), -50, 25),
        "rssi_dbm": within(decimal(row.get("RSSI", "")), -130, -10),
        "plmn": plmn(row.get("MCC", ""), row.get("MNC", "")),
        "tac": area_code(whole(row.get("TAC", ""))),
        "eci": eci,
        "pci": code(row.get("PCI", ""), 0, 503),
        "earfcn": _channel(row.get("EARFCN"), band),
        "band": band,
        "bandwidth_mhz": lte_bandwidth_mhz(row.get("D", "")),
    }
    if reading.sinr_db is None:
        told["sinr_db"] = within(decimal(row.get("SNR", "")), -40, 60)
    known = {name: value for name, value in told.items() if value is not None}
    return replace(reading, rat=reading.rat or "LTE", **known) if known else reading


def _band(text: str | None) -> int | None:
    """``B4`` or ``n78``."""
    found = re.fullmatch(r"[BbNn]([0-9]{1,3})", text or "")
    return code(found.group(1), 1, 1024) if found else None


def _channel(text: str | None, band: int | None) -> int | None:
    """An EARFCN; 65535 is none, and so is 0 in any band but the first."""
    found = code(text or "", 0, 262143)
    return None if found == 65535 or (found == 0 and band not in (None, 1)) else found


def _present(cell: int | None) -> int | None:
    """A cell identity of zeros is what a modem without a cell prints."""
    return cell or None


# Three command lines: either text block may be refused, and the standard's own commands fill what both lack.
DRIVER = Driver(
    "sierra",
    poll=("AT!GSTATUS?", "AT!LTEINFO?", "AT+CEREG?;+COPS?"),
    decode=decode,
    knows=("sierra",),
    reads=("AT!NRINFO?",),
)
