"""The codes of 3GPP TS 27.007 (+CSQ clause 8.5, +CESQ clause 8.69) as quantities, once for every family that prints them, and the
two places that a NR cell's quantities have in a reading. Values are the lower edges of the bins; None stays None, and a code
that stands in no table has no quantity."""

from __future__ import annotations

from dataclasses import replace

from tandem.modem.base import Reading
from tandem.modem.scalars import code


def rssi_dbm(found: int | None) -> float | None:
    """+CSQ's, 0 to 31: −113 + 2v."""
    return scaled(found, 2, -113, 31)


def rxlev_dbm(found: int | None) -> float | None:
    """2G, 0 to 63: −111 + v."""
    return scaled(found, 1, -111, 63)


def rscp_dbm(found: int | None) -> float | None:
    """3G, 0 to 96: −121 + v."""
    return scaled(found, 1, -121, 96)


def ecno_db(found: int | None) -> float | None:
    """3G, 0 to 49: −24.5 + v/2."""
    return scaled(found, 0.5, -24.5, 49)


def rsrp_dbm(found: int | None) -> float | None:
    """LTE, 0 to 97: −141 + v."""
    return scaled(found, 1, -141, 97)


def rsrq_db(found: int | None) -> float | None:
    """LTE, 0 to 34: −20 + v/2."""
    return scaled(found, 0.5, -20, 34)


def ss_rsrp_dbm(found: int | None) -> float | None:
    """NR, 0 to 126: −157 + v."""
    return scaled(found, 1, -157, 126)


def ss_rsrq_db(found: int | None) -> float | None:
    """NR, 0 to 126: (v − 87)/2."""
    return scaled(found, 0.5, -43.5, 126)


def ss_sinr_db(found: int | None) -> float | None:
    """NR, 0 to 127: (v − 47)/2."""
    return scaled(found, 0.5, -23.5, 127)


def scaled(found: int | None, step: float, offset: float, highest: int, lowest: int = 0) -> float | None:
    """``offset`` + ``step``·``found``, to a tenth and always a float; None outside the table."""
    if found is None or not lowest <= found <= highest:
        return None
    return round(float(offset) + step * found, 1)


def as_read(text: str, *unknown: int) -> int | None:
    """A code as it is printed, an octet, also one that stands in no table: its quantity is None then. 255 and ``unknown``
    are no codes."""
    found = code(text, 0, 254)
    return None if found in unknown else found


def with_lte_codes(reading: Reading, rsrp: str, rsrq: str) -> Reading:
    """The reading with LTE's RSRP and RSRQ, printed as +CESQ's codes."""
    power, quality = as_read(rsrp), as_read(rsrq)
    return replace(
        reading, rsrp_code=power, rsrp_dbm=rsrp_dbm(power), rsrq_code=quality, rsrq_db=rsrq_db(quality)
    )  # fmt: skip


def with_wcdma_codes(reading: Reading, rscp: str, ecno: str) -> Reading:
    """The reading with 3G's RSCP and Ec/N0, printed as +CESQ's codes."""
    power, quality = as_read(rscp), as_read(ecno)
    return replace(
        reading, rscp_code=power, rscp_dbm=rscp_dbm(power), ecno_code=quality, ecno_db=ecno_db(quality)
    )  # fmt: skip


def with_gsm_code(reading: Reading, rxlev: str) -> Reading:
    """The reading with 2G's level, printed as +CESQ's code."""
    level = as_read(rxlev, 99)
    return replace(reading, rssi_code=level, rssi_dbm=rxlev_dbm(level))


def with_secondary(anchor: Reading, nr: Reading) -> Reading:
    """The LTE anchor with the quantities of ``nr``, a standalone cell's, as its secondary cell's: NR-NSA."""
    return replace(
        anchor,
        rat="NR-NSA",
        nr_rsrp_dbm=nr.rsrp_dbm,
        nr_rsrq_db=nr.rsrq_db,
        nr_sinr_db=nr.sinr_db,
        nr_rsrp_code=nr.rsrp_code,
        nr_rsrq_code=nr.rsrq_code,
        nr_sinr_code=nr.sinr_code,
        nr_pci=nr.pci,
        nr_arfcn=nr.earfcn,
        nr_band=nr.band,
    )
