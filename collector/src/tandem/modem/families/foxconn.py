"""Foxconn's ^DEBUG?, which MV31 has too, and ^CA_INFO?, which LN940 has too: lines of names and values.

Source: answers of T99W175, MV31-W and DW5821e (T77W968) as published. Ids are decimal. Of T99W175 some firmware writes ``lte_rsrp``,
some ``rsrp``; secondary carriers follow as ``scell:``, NR at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.scales import cell_identity, code, decimal, plmn, within
from tandem.modem.ts27007 import all_lines, fill

_PAIR = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z][A-Za-z0-9_]{1,23})\s*:\s*([-+]?[A-Za-z0-9.+_-]+)")
_RATS = {"LTE": "LTE", "LTE+NR": "NR-NSA", "NR5G_SA": "NR-SA", "WCDMA": "WCDMA", "GSM": "GSM"}


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """The cell of ^DEBUG?, what it lacks from ^CA_INFO? and the standard."""
    lines = all_lines(responses)
    return fill(with_ca_info(debug(lines), lines), lines)


def debug(lines: Sequence[str]) -> Reading:
    """The primary cell, and NR's: on NSA as the secondary cell's, standalone as the plain quantities."""
    told = _pairs(lines)
    rat = _RATS.get(told.get("rat", "").upper())
    if rat is None:
        return _labelled(lines)
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
    band = code(told.get("lte_band", ""), 1, 255)
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
        earfcn=_earfcn(code(told.get("channel", ""), 0, 262143), band),
        band=band,
        bandwidth_mhz=_number(told, 1.4, 20, "lte_band_width"),
        nr_rsrp_dbm=nr_rsrp,
        nr_rsrq_db=nr_rsrq,
        nr_sinr_db=nr_sinr,
        nr_pci=nr_pci,
        nr_arfcn=nr_arfcn,
        nr_band=nr_band,
    )


def _earfcn(found: int | None, band: int | None) -> int | None:
    """The firmware prints the last 16 bits: the bands from 65 to 88 lie above them (3GPP TS 36.101 table 5.7.3-1)."""
    return found + 0x10000 if found is not None and found <= 0xFFFF and band is not None and 65 <= band <= 88 else found


_STATES = {"CONNECTED": "connected", "IDLE": "idle"}


def _labelled(lines: Sequence[str]) -> Reading:
    """T77W968: a label a line. ``EARFCN(DL/UL): 1300/19300``, ``PLMN: 001 01``, ``eNB ID(PCI): <eNB>-<sector>(<pci>)``, ``RS-SINR: 3dB`` …,
    with LTE. In which base its TAC is, is not known."""
    told: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        told.setdefault(name.strip().lower(), value.strip())
    found = re.fullmatch(r"([0-9]{1,7})-([0-9]{1,3})\(([0-9]{1,3})\)", told.get("enb id(pci)", ""))
    if found is None:
        return Reading()
    enb, sector, pci = found.groups()
    mcc, _, mnc = told.get("plmn", "").partition(" ")
    band = code(told.get("band", ""), 1, 255)
    return Reading(
        rat="LTE",
        state=_STATES.get(told.get("rrc status", "").upper(), "unknown"),
        rsrp_dbm=_number(told, -157, -30, "rsrp"),
        rsrq_db=_number(told, -50, 25, "rsrq"),
        sinr_db=_number(told, -40, 60, "rs-sinr"),
        rssi_dbm=_number(told, -130, -10, "rssi"),
        plmn=plmn(mcc, mnc),
        eci=cell_identity(int(enb) << 8 | int(sector), "LTE") if int(sector) <= 255 else None,
        pci=code(pci, 0, 503),
        earfcn=_earfcn(code(told.get("earfcn(dl/ul)", "").partition("/")[0], 0, 262143), band),
        band=band,
        bandwidth_mhz=_number(told, 1.4, 20, "bw"),
    )


_CA_INFO = re.compile(
    r"PCC info: *Band is LTE_B([0-9]{1,3}), *Band_width is ([0-9]{1,2}(?:\.[0-9])?) *MHz", re.IGNORECASE
)


def with_ca_info(reading: Reading, lines: Sequence[str]) -> Reading:
    """``PCC info: Band is LTE_B7, Band_width is 20.0 MHz``: the primary carrier, for what is missing."""
    found = next((match for match in map(_CA_INFO.search, lines) if match), None)
    if found is None or reading.rat not in (None, "LTE"):
        return reading
    band, width = code(found.group(1), 1, 1024), within(decimal(found.group(2)), 1.4, 20)
    return replace(reading, rat="LTE", band=reading.band or band, bandwidth_mhz=reading.bandwidth_mhz or width)


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
    texts = (re.sub(r"(?i) *(?:dbm?|mhz)\b.*", "", told.get(name, "")) for name in names)
    return next((one for one in (within(decimal(text), lowest, highest) for text in texts) if one is not None), None)


def _level(told: Mapping[str, str], *names: str) -> float | None:
    """A RSRP. Some firmware loses the minus of NR's (its antennas' levels, which follow, have theirs)."""
    found = _number(told, -157, 157, *names)
    return None if found is None else within(-abs(found), -157, -30)


# Known by the model, as the manufacturer is the chipset's, Dell or nobody; MV31 says that it is Cinterion's.
DRIVER = Driver(
    "foxconn",
    poll=("AT^DEBUG?", "AT+CSQ;+CEREG?;+COPS?"),
    decode=decode,
    knows=("t99w", "t77w968", "dw5821e", "dw5829e", "dw5930e", "dw5932e", "dw5933e", "dw5934e"),
    reads=("AT^CA_INFO?",),
)
