"""What one modem hears at one moment, and how the standard and the makers code it.

Codes are bins. The functions here give the bin that holds a value, clipped at both ends, or the code for "not known".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

Rat = Literal["LTE", "NR-NSA", "NR-SA", "WCDMA", "GSM"]


@dataclass(frozen=True, slots=True)
class Radio:
    """One tick. None is "not known".

    For WCDMA ``rsrp_dbm`` is the RSCP and ``rsrq_db`` the Ec/Io; for GSM ``rssi_dbm`` is the RXLEV. ``eci`` is the cell
    identity of whatever ``rat`` (28 bit in LTE and WCDMA, 36 in NR, 16 in GSM), ``tac`` the tracking or location area,
    ``earfcn`` the downlink channel number, ``pci`` the physical cell (LTE, NR), scrambling code (WCDMA) or BSIC (GSM).
    ``nr_*`` describe the second leg of NR-NSA and are absent in most timelines.
    """

    rat: Rat | None = None
    registered: bool = False
    rsrp_dbm: float | None = None
    rsrq_db: float | None = None
    sinr_db: float | None = None
    rssi_dbm: float | None = None
    plmn: str | None = None
    tac: int | None = None
    eci: int | None = None
    pci: int | None = None
    earfcn: int | None = None
    band: int | None = None
    bandwidth_mhz: float = 20.0
    nr_pci: int | None = None
    nr_rsrp_dbm: float | None = None
    nr_sinr_db: float | None = None
    nr_rsrq_db: float | None = None
    nr_arfcn: int | None = None
    nr_band: int | None = None

    @property
    def heard(self) -> bool:
        """Whether there is a cell at all: a technology and some level."""
        return self.rat is not None and (self.rsrp_dbm is not None or self.rssi_dbm is not None)

    @property
    def mcc(self) -> str:
        """First three digits of the PLMN, empty when not known."""
        return (self.plmn or "")[:3]

    @property
    def mnc(self) -> str:
        """The other two or three digits of the PLMN, empty when not known."""
        return (self.plmn or "")[3:]

    @property
    def duplex(self) -> str:
        """``TDD`` for the bands that 3GPP TS 36.101 table 5.5-1 and 38.101-1 table 5.2-1 give to TDD, else ``FDD``."""
        band = self.band or 0
        return "TDD" if 33 <= band <= 53 or 77 <= band <= 79 or band >= 257 else "FDD"


NO_SERVICE = Radio()


def barred(radio: Radio) -> Radio:
    """The same cell, heard but not admitted to: limited service."""
    return replace(radio, registered=False)


def coded(value: float | None, offset: float, step: float, top: int, unknown: int) -> int:
    """The bin of ``value``: ``floor((value - offset) / step)`` within 0 to ``top``; ``unknown`` for None.

    ``offset`` is the lower edge that code 0 would have if it were a bin as the others.
    """
    if value is None:
        return unknown
    # Rounded first: −19.8 − (−20.2) is not 0.4 in binary, and the floor would land one bin too low.
    return max(0, min(top, math.floor(round((value - offset) / step, 6))))


def csq(rssi_dbm: float | None) -> int:
    """3GPP TS 27.007 8.5: 0 is −113 dBm or less, 31 is −51 dBm or more, steps of 2; 99 unknown."""
    return coded(rssi_dbm, -113, 2, 31, 99)


def rsrp(value_dbm: float | None) -> int:
    """TS 27.007 8.69: 0 below −140 dBm, 97 from −44 dBm; 255 unknown."""
    return coded(value_dbm, -141, 1, 97, 255)


def rsrq(value_db: float | None) -> int:
    """TS 27.007 8.69: 0 below −19.5 dB, 34 from −3 dB; 255 unknown."""
    return coded(value_db, -20, 0.5, 34, 255)


def rxlev(value_dbm: float | None) -> int:
    """TS 27.007 8.69: 0 below −110 dBm, 63 from −48 dBm; 99 unknown."""
    return coded(value_dbm, -111, 1, 63, 99)


def rscp(value_dbm: float | None) -> int:
    """TS 27.007 8.69: 0 below −120 dBm, 96 from −25 dBm; 255 unknown."""
    return coded(value_dbm, -121, 1, 96, 255)


def ecno(value_db: float | None) -> int:
    """TS 27.007 8.69: 0 below −24 dB, 49 from 0 dB; 255 unknown."""
    return coded(value_db, -24.5, 0.5, 49, 255)


def ss_rsrp(value_dbm: float | None) -> int:
    """TS 27.007 8.69 (NR): 0 below −156 dBm, 126 from −31 dBm; 255 unknown."""
    return coded(value_dbm, -157, 1, 126, 255)


def ss_rsrq(value_db: float | None) -> int:
    """TS 27.007 8.69 (NR): 0 below −43 dB, 126 from 20 dB in half decibels; 255 unknown."""
    return coded(value_db, -43.5, 0.5, 126, 255)


def ss_sinr(value_db: float | None) -> int:
    """TS 27.007 8.69 (NR): 0 below −23 dB, 127 from 40 dB in half decibels; 255 unknown."""
    return coded(value_db, -23.5, 0.5, 127, 255)


def whole(value: float | None, unknown: str) -> str:
    """A level as the makers print it, rounded to whole decibels; ``unknown`` for None."""
    return unknown if value is None else str(round(value))
