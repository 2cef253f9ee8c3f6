"""BroadMobi's +BMTCELLINFO, with +CSQ, +CEREG and +COPS of the standard.

Source: public readers of BM806U (D-Link DWR-921, DWM-222). Names and values in pairs, several to a line or one, spelled with
underscores or spaces (``ACTIVE BAND``, and ``ACTVIE_BAND`` on some firmware); numbers are decimal. Zero stands for what is not
known, 65535 for an EARFCN that is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.scales import area_code, cell_identity, code, decimal, hexadecimal, whole, within
from tandem.modem.ts27007 import all_lines, fill

_PAIR = re.compile(r"\s*([A-Za-z][A-Za-z_ ]{1,24}?)\s*:\s*([-+]?[0-9A-Fa-f][0-9A-Za-z. -]{0,20}?)\s*\Z")


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Levels, PCI, band and EARFCN from +BMTCELLINFO; TAC and ECI from +CEREG, else from it where their base is sure. RRC is not
    told."""
    lines = all_lines(responses)
    told = _pairs(lines)
    rsrp = _negative(told.get("rsrp"), -156, -30)
    if rsrp is None:
        return fill(Reading(), lines)
    sinr, sinr_code = _sinr(told.get("sinr"))
    reading = Reading(
        rat="LTE",
        rsrp_dbm=rsrp,
        rsrq_db=_negative(told.get("rsrq"), -50, 0),
        sinr_db=sinr,
        sinr_code=sinr_code,
        rssi_dbm=_negative(told.get("rssi"), -130, -10),
        pci=code(told.get("pci", ""), 1, 503),
        earfcn=_known(told.get("earfcndl") or told.get("earfcn") or told.get("activechannel"), 65534),
        band=_known(told.get("activeband") or told.get("actvieband"), 255),
    )
    reading = fill(reading, lines)
    return _with_cell(reading, told) if reading.tac is None and reading.eci is None else reading


def _with_cell(reading: Reading, told: Mapping[str, str]) -> Reading:
    """TAC and ECI of +BMTCELLINFO, for want of +CEREG. Both are of one base, and nothing says which: a letter means hexadecimal; a
    cell of more than 28 bits or an area of more than 16 in one base means the other; where neither settles it both are None."""
    if reading.rat not in ("LTE", "NR-NSA"):
        return reading
    texts = (told.get("cellid", ""), told.get("tac", ""))
    readings = [
        (cell_identity(base(texts[0]), "LTE"), area_code(base(texts[1])))
        for base in (whole, hexadecimal)
        if all(_fits(base(text), text, limit) for text, limit in zip(texts, (0xFFFFFFF, 0xFFFF), strict=True))
    ]
    same = len(set(readings)) == 1
    return replace(reading, eci=readings[0][0] or None, tac=readings[0][1]) if same else reading


def _fits(found: int | None, text: str, highest: int) -> bool:
    return not text or (found is not None and 0 <= found <= highest)


def _pairs(lines: Iterable[str]) -> dict[str, str]:
    """Names of letters only, in small ones → the number's text without its unit."""
    found: dict[str, str] = {}
    for line in lines:
        for part in re.sub(r"^\+BMTCELLINFO\s*:", "", line).split(","):
            match = _PAIR.match(part)
            if match:
                name = re.sub("[^a-z]", "", match.group(1).lower())
                found[name] = re.sub(r"\s*(?:dBm?|MHz)\Z", "", match.group(2), flags=re.IGNORECASE)
    return found


def _negative(text: str | None, lowest: float, highest: float) -> float | None:
    """RSSI is printed without its sign, RSRP and RSRQ with it; none of them is ever above zero."""
    found = decimal(text or "")
    return None if found is None or found == 0 else within(-abs(found), lowest, highest)


def _sinr(text: str | None) -> tuple[float | None, int | None]:
    """SINR in dB, and the code as read.

    Of the public readers two take it for dB and one for a code of v/5 − 20 (0 to 250). Below zero it can be dB only, above 30
    a code only; between, dB: as a code it would be −14 dB or less, where a modem hardly stays in service.
    """
    found = whole(text or "")
    if found is None or found > 250 or found < -40:
        return None, None
    return (found / 5 - 20 if found > 30 else float(found)), found


def _known(text: str | None, highest: int) -> int | None:
    return code(text or "", 1, highest)


DRIVER = Driver(
    "broadmobi",
    poll=("AT+CSQ;+CEREG?;+COPS?", "AT+BMTCELLINFO"),
    decode=decode,
    knows=("broadmobi", "bm806"),
    but_not=("d-link", "dwm-222"),
)
