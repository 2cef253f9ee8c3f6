"""^DEBUG? of MV31 (a Foxconn T99W175 inside): lines of names and values.

Source: answers of T99W175 and MV31-W as published. Ids are decimal. Some firmware writes ``lte_rsrp``, some ``rsrp``; secondary
carriers follow as ``scell:``, NR at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tandem.modem.base import Reading
from tandem.modem.scalars import code, decimal, plmn, within

_PAIR = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z][A-Za-z0-9_]{1,23})\s*:\s*([-+]?[A-Za-z0-9.+_-]+)")
_RATS = {"LTE": "LTE", "LTE+NR": "NR-NSA", "NR5G_SA": "NR-SA", "WCDMA": "WCDMA", "GSM": "GSM"}


def decode(lines: Sequence[str]) -> Reading:
    """The primary cell, and NR's: on NSA as the secondary cell's, standalone as the plain quantities."""
    told = _pairs(lines)
    rat = _RATS.get(told.get("rat", "").upper())
    if rat is None:
        return Reading()
    network = plmn(told.get("mcc", ""), told.get("mnc", ""))
    if rat in ("WCDMA", "GSM"):
        return Reading(rat=rat, plmn=network)
    nr_rsrp = _level(told, "nr_rsrp")
    nr_rsrq, nr_sinr = _number(told, -50, 25, "nr_rsrq"), _number(told, -40, 60, "nr_snr")
    nr_pci, nr_arfcn = code(told.get("nr_pci", ""), 0, 1007), code(told.get("nr_channel", ""), 1, 3279165)
    nr_band = code(told.get("nr_band", "").lstrip("nN"), 1, 512)
    if rat == "NR-SA":
        return Reading(
            rat=rat,
            rsrp_dbm=nr_rsrp,
            rsrq_db=nr_rsrq,
            sinr_db=nr_sinr,
            plmn=network,
            tac=code(told.get("nr_tac", ""), 1, 0xFFFFFD),
            eci=code(told.get("nr_cell_id", ""), 1, 0xFFFFFFFFE),
            pci=nr_pci,
            earfcn=nr_arfcn,
            band=nr_band,
            bandwidth_mhz=_number(told, 5, 400, "nr_band_width"),
        )
    return Reading(
        rat=rat,
        rsrp_dbm=_level(told, "lte_rsrp", "rsrp"),
        rsrq_db=_number(told, -50, 25, "lte_rsrq", "rsrq"),
        sinr_db=_number(told, -40, 60, "lte_snr", "snr"),
        rssi_dbm=_number(told, -130, -10, "lte_rssi", "rssi"),
        plmn=network,
        tac=code(told.get("lte_tac", ""), 1, 0xFFFD),
        eci=code(told.get("lte_cell_id", ""), 1, 0xFFFFFFE),
        pci=code(told.get("pci", ""), 0, 503),
        earfcn=code(told.get("channel", ""), 0, 262143),
        band=code(told.get("lte_band", ""), 1, 255),
        bandwidth_mhz=_number(told, 1.4, 20, "lte_band_width"),
        nr_rsrp_dbm=nr_rsrp,
        nr_rsrq_db=nr_rsrq,
        nr_sinr_db=nr_sinr,
        nr_pci=nr_pci,
        nr_arfcn=nr_arfcn,
        nr_band=nr_band,
    )


def _pairs(lines: Sequence[str]) -> dict[str, str]:
    """Names in small letters → their first values, those of secondary carriers (``scell:`` up to NR's) left out."""
    found: dict[str, str] = {}
    secondary = False
    for line in lines:
        small = line.lower()
        if "scell:" in small:
            secondary = True
        elif small.startswith(("nr_", "rat:", "pcell:")):
            secondary = False
        if not secondary:
            for name, value in _PAIR.findall(re.sub("(?i)pcell:", "", line)):
                found.setdefault(name.lower(), value)
    return found


def _number(told: Mapping[str, str], lowest: float, highest: float, *names: str) -> float | None:
    """With its unit behind it (``dBm``, ``dB``, ``MHz``); ``NA`` is none."""
    texts = (re.sub(r"(?i)(?:dbm?|mhz)\Z", "", told.get(name, "")) for name in names)
    return next((one for one in (within(decimal(text), lowest, highest) for text in texts) if one is not None), None)


def _level(told: Mapping[str, str], *names: str) -> float | None:
    """A RSRP. Some firmware loses the minus of NR's (its antennas' levels, which follow, have theirs)."""
    found = _number(told, -157, 157, *names)
    return None if found is None else within(-abs(found), -157, -30)
