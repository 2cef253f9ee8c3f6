"""ZTE's +ZCELLINFO, +ZCAINFO and +ZPAS, which MikroTik's R11e-LTE6 has too. Pure functions of values.

Source: answers of MF821, MF283+, MF286, ME3630 and ZM8620 as published in public readers. Numbers are decimal; 0X marks a
hexadecimal one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tandem.modem.scalars import at, code, hexadecimal, whole

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
