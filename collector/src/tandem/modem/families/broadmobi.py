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
from tandem.modem.base import EJECT, Driver, Identity, Reading, device
from tandem.modem.scales import area_code, below_zero, cell_identity, fifths, hexadecimal, labelled, whole, within
from tandem.modem.ts27007 import all_lines, fill

_PAIR = re.compile(r"\s*([A-Za-z][A-Za-z_ ]{1,24}?)\s*:\s*([-+]?[0-9A-Fa-f][0-9A-Za-z. -]{0,20}?)\s*\Z")


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Levels, PCI, band and EARFCN from +BMTCELLINFO; TAC and ECI from +CEREG, else from it where their base is sure. RRC is not
    told."""
    lines = all_lines(responses)
    reported = _pairs(lines)
    rsrp = within(below_zero(reported.get("rsrp", "")), -156, -30)
    if rsrp is None:
        return fill(Reading(), lines)
    sinr, sinr_code = _sinr(reported.get("sinr", ""))
    reading = labelled(
        "LTE",
        "pci=pci earfcn=earfcndl|earfcn|activechannel band=activeband|actvieband",
        reported,
        rsrp_dbm=rsrp,
        rsrq_db=within(below_zero(reported.get("rsrq", "")), -50, 0),
        rssi_dbm=within(below_zero(reported.get("rssi", "")), -130, -10),
        sinr_db=sinr,
        sinr_code=sinr_code,
    )
    reading = fill(reading, lines)
    return _with_cell(reading, reported) if reading.tac is None and reading.eci is None else reading


def _with_cell(reading: Reading, reported: Mapping[str, str]) -> Reading:
    """TAC and ECI of +BMTCELLINFO, for want of +CEREG. Both are of one base, and nothing says which: a letter means hexadecimal; a
    cell of more than 28 bits or an area of more than 16 in one base means the other; where neither settles it both are None."""
    if reading.rat not in ("LTE", "NR-NSA"):
        return reading
    texts = (reported.get("cellid", ""), reported.get("tac", ""))
    possible = {
        (cell_identity(base(texts[0]), "LTE"), area_code(base(texts[1])))
        for base in (whole, hexadecimal)
        if all(_fits(base(text), text, limit) for text, limit in zip(texts, (0xFFFFFFF, 0xFFFF), strict=True))
    }
    eci, tac = possible.pop() if len(possible) == 1 else (None, None)
    return replace(reading, eci=eci, tac=tac)


def _fits(found: int | None, text: str, highest: int) -> bool:
    return not text or (found is not None and 0 <= found <= highest)


def _pairs(lines: Iterable[str]) -> dict[str, str]:
    """Names of letters only, in small ones → the number's text without its unit."""
    found: dict[str, str] = {}
    for line in lines:
        for part in re.sub(r"^\+BMTCELLINFO\s*:", "", line).split(","):
            if match := _PAIR.match(part):
                name = re.sub("[^a-z]", "", match.group(1).lower())
                text = re.sub(r"(?i)\s*(?:dBm?|MHz)\Z", "", match.group(2))
                found[name] = "" if text == "65535" or (text == "0" and name != "sinr") else text
    return found


def _sinr(text: str) -> tuple[float | None, int | None]:
    """SINR in dB, and the code as read.

    Of the public readers two take it for dB and one for a code of v/5 − 20 (0 to 250). Below zero it can be dB only, above 30
    a code only; between, dB: as a code it would be −14 dB or less, where a modem hardly stays in service.
    """
    found = whole(text)
    if found is None or found > 250 or found < -40:
        return None, None
    return (fifths(found) if found > 30 else float(found)), found


DRIVER = Driver(
    "broadmobi",
    poll=("AT+CSQ;+CEREG?;+COPS?", "AT+BMTCELLINFO"),
    decode=decode,
    knows=("broadmobi", "bm806"),
    but_not=("d-link", "dwm-222"),
    devices=(
        # One of the three sticks sold under this name; QMI on interface 4. As 2020:2033 some firmware comes up.
        device(
            "2020:2031",
            "Telewell TW-LTE 4G/3G USB (BroadMobi)",
            at_second=1,
            at=2,
            network=4,
            switched_from="2030",
            mode_switch=EJECT,
        ),
        # Interface 2 is the modem (PPP too), 1 answers AT beside it. QMI on interface 4.
        device(
            "2020:2033",
            "BM806U, Telewell TW-LTE 4G/3G USB (BroadMobi)",
            at_second=1,
            at=2,
            network=4,
            switched_from="2030",
            mode_switch=EJECT,
        ),
    ),
)
