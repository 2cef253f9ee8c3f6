"""Foxconn's ^DEBUG?, which MV31 has too, and ^CA_INFO?, which LN940 has too: lines of names and values.

Source: answers of T99W175, MV31-W and DW5821e (T77W968) as published. Ids are decimal. Of T99W175 some firmware writes ``lte_rsrp``,
some ``rsrp``; secondary carriers follow as ``scell:``, NR at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading, device
from tandem.modem.scales import below_zero, cell_identity, filled, labelled, with_secondary, within
from tandem.modem.ts27007 import all_lines, fill

_PAIR = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z][A-Za-z0-9_]{1,23})\s*:\s*([-+]?[A-Za-z0-9.+_-]+)")
_RATS = {"LTE": "LTE", "LTE+NR": "NR-NSA", "NR5G_SA": "NR-SA", "WCDMA": "WCDMA", "GSM": "GSM"}


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """The cell of ^DEBUG?, what it lacks from ^CA_INFO? and the standard."""
    lines = all_lines(responses)
    return fill(with_ca_info(debug(lines), lines), lines)


_NR = "rsrq_db=nr_rsrq sinr_db=nr_snr tac:d=nr_tac eci:d=nr_cell_id pci=nr_pci earfcn=nr_channel band=nr_band bandwidth_mhz=nr_band_width"
_LTE = (
    "rsrp_dbm=lte_rsrp|rsrp rsrq_db=lte_rsrq|rsrq sinr_db=lte_snr|snr rssi_dbm=lte_rssi|rssi tac:d=lte_tac eci:d=lte_cell_id pci=pci"
    " earfcn=channel band=lte_band bandwidth_mhz=lte_band_width"
)


def debug(lines: Sequence[str]) -> Reading:
    """The primary cell, and NR's: on NSA as the secondary cell's, standalone as the plain quantities."""
    reported = _pairs(lines)
    rat = _RATS.get(reported.get("rat", "").upper())
    if rat is None:
        return _labelled(lines)
    if rat in ("WCDMA", "GSM"):
        return labelled(rat, "mcc=mcc mnc=mnc", reported)
    # Some firmware loses the minus of NR's RSRP (its antennas' levels, which follow, have theirs).
    nr = labelled(
        "NR-SA", f"mcc=mcc mnc=mnc {_NR}", reported, rsrp_dbm=within(below_zero(reported.get("nr_rsrp", "")), -157, -30)
    )
    if rat == "NR-SA":
        return nr
    anchor = _with_whole_earfcn(labelled("LTE", f"mcc=mcc mnc=mnc {_LTE}", reported))
    return replace(with_secondary(anchor, nr), rat=rat)  # of LTE alone ``fill`` knows whether there is NR beside it


def _with_whole_earfcn(reading: Reading) -> Reading:
    """The firmware prints the last 16 bits: the bands from 65 to 88 lie above them (3GPP TS 36.101 table 5.7.3-1)."""
    found, band = reading.earfcn, reading.band
    above = found is not None and found <= 0xFFFF and band is not None and 65 <= band <= 88
    return replace(reading, earfcn=found + 0x10000) if above and found is not None else reading


_STATES = {"CONNECTED": "connected", "IDLE": "idle"}


def _labelled(lines: Sequence[str]) -> Reading:
    """T77W968: a label a line. ``EARFCN(DL/UL): 1300/19300``, ``PLMN: 001 01``, ``eNB ID(PCI): <eNB>-<sector>(<pci>)``, ``RS-SINR: 3dB`` …,
    with LTE. In which base its TAC is, is not known."""
    reported: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        reported.setdefault(name.strip().lower(), re.sub(r"(?i)(dbm?|mhz)\b.*", r"\1", value).strip())
    found = re.fullmatch(r"([0-9]{1,7})-([0-9]{1,3})\(([0-9]{1,3})\)", reported.get("enb id(pci)", ""))
    if found is None:
        return Reading()
    enb, sector, reported["pci"] = found.groups()
    reported["mcc"], _, reported["mnc"] = reported.get("plmn", "").partition(" ")
    reported["earfcn"] = reported.get("earfcn(dl/ul)", "").partition("/")[0]
    reading = labelled(
        "LTE",
        "rsrp_dbm=rsrp rsrq_db=rsrq sinr_db=rs-sinr rssi_dbm=rssi mcc=mcc mnc=mnc pci=pci earfcn=earfcn band=band bandwidth_mhz=bw",
        reported,
        state=_STATES.get(reported.get("rrc status", "").upper(), "unknown"),
        eci=cell_identity(int(enb) << 8 | int(sector), "LTE") if int(sector) <= 255 else None,
    )
    return _with_whole_earfcn(reading)


_CA_INFO = re.compile(
    r"PCC info: *Band is LTE_B([0-9]{1,3}), *Band_width is ([0-9]{1,2}(?:\.[0-9])?) *MHz", re.IGNORECASE
)


def with_ca_info(reading: Reading, lines: Sequence[str]) -> Reading:
    """``PCC info: Band is LTE_B7, Band_width is 20.0 MHz``: the primary carrier, for what is missing."""
    found = next((match for match in map(_CA_INFO.search, lines) if match), None)
    if found is None or reading.rat not in (None, "LTE"):
        return reading
    return filled(reading, labelled("LTE", "band=1 bandwidth_mhz=2", {"1": found.group(1), "2": found.group(2)}))


def _pairs(lines: Sequence[str]) -> dict[str, str]:
    """Names in small letters → their first values, those of secondary carriers (``scell:`` up to NR's) left out; ``NA`` is none."""
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


# Known by the model, as the manufacturer is the chipset's, Dell or nobody; MV31 says that it is Cinterion's.
# T99W175 and its kin are PCI Express devices, or USB with ids of whoever sells them. Which serial interface answers AT is not
# published: the port is named in the configuration.
DRIVER = Driver(
    "foxconn",
    poll=("AT^DEBUG?", "AT+CSQ;+CEREG?;+COPS?"),
    decode=decode,
    knows=("t99w", "t77w968", "dw5821e", "dw5829e", "dw5930e", "dw5932e", "dw5933e", "dw5934e"),
    reads=("AT^CA_INFO?",),
    devices=(
        device("0489:e0b4", "T77W968"),
        device("0489:e0b5", "T77W968 (eSIM)"),
        device("413c:81d7", "DW5821e"),
        device("413c:81e0", "DW5821e (eSIM)"),
    ),
)
