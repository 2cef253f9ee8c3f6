"""The scales of +CPSI's levels, which differ by model and firmware and are told by the row itself.

LTE rows: RSRP beyond −200 is in tenths (SIM7600, SIM8200), between −156 and −30 in dBm (SIM7000), above 0 an index as +CESQ's
(A7600 and its sisters). RSRQ and RSSI are in the scale of their row's RSRP. RSSNR: 2v − 20 where the levels are decibels or
tenths, dB as it is where they are an index.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tandem.modem.base import Reading
from tandem.modem.bins import with_lte_codes
from tandem.modem.scalars import code, decimal, within

TENTHS_BEYOND_DBM = -200.0
"""No RSRP is that low: such a number is in tenths."""

LOWEST_SNR_DB, HIGHEST_SNR_DB = -23.0, 40.0
"""The range of NR's SS-SINR (3GPP TS 38.133 table 10.1.16.1-1)."""


def lte_levels(reading: Reading, rsrq: str, rsrp: str, rssi: str, rssnr: str) -> Reading:
    """``reading`` with the levels of an LTE row. In the index firmware RSRP is −141 + v, RSRQ −20 + v/2; what its RSSI means is
    not known: it is not read, so that +CSQ's has its place. 255 is none."""
    level = decimal(rsrp)
    if level is None or level == 0:
        return replace(reading, sinr_code=_code(rssnr))
    if level > 0:
        snr = None if rssnr == "255" else _code(rssnr)
        return replace(
            with_lte_codes(reading, rsrp, rsrq),
            sinr_code=snr,
            sinr_db=None if snr is None else within(float(snr), -20, 40),
        )
    step = 0.1 if level < TENTHS_BEYOND_DBM else 1.0
    snr = _code(rssnr)
    return replace(
        reading,
        rsrp_dbm=within(_scaled(rsrp, step), -156, -30),
        rsrq_db=within(_scaled(rsrq, step), -50, 25),
        rssi_dbm=within(_scaled(rssi, step), -130, -10),
        sinr_code=snr,
        sinr_db=_rssnr_db(snr),
    )


def _rssnr_db(found: int | None) -> float | None:
    """2v − 20 (0 to 25). A number that this scale cannot have (below 0, or 26 to 40) is dB as it is."""
    if found is None:
        return None
    return 2.0 * found - 20 if 0 <= found <= 25 else within(float(found), -20, 40)


@dataclass(frozen=True)
class NrLevels:
    """dBm and dB; ``sinr_code``: the number as printed, where it is a whole one."""

    rsrp_dbm: float | None = None
    rsrq_db: float | None = None
    sinr_db: float | None = None
    sinr_code: int | None = None


def nr_levels(first: str, second: str, snr: str) -> NrLevels:
    """RSRP, RSRQ and SNR of an NR row: all in tenths (``-960,-120,95``), or all in decibels with RSRQ first (``-12,-86,8.5``).

    RSRP is the one that is further below zero. −32768 is none. A SNR with a decimal is dB; beside tenths some firmware prints tenths
    (``290``) and other, RedCap's too, dB (``40``): it is decoded where it can only be tenths.
    """
    levels = [value for value in (decimal(first), decimal(second)) if value is not None and -2000 < value < 0]
    if len(levels) != 2:
        return NrLevels(sinr_code=_code(snr))
    rsrp, rsrq = sorted(levels)
    step = 0.1 if rsrp < TENTHS_BEYOND_DBM else 1.0
    sinr = decimal(snr)
    if sinr is not None and "." not in snr and step < 1:
        sinr = None if within(sinr, LOWEST_SNR_DB, HIGHEST_SNR_DB) is not None else round(sinr * step, 1)
    return NrLevels(
        within(round(rsrp * step, 1), -157, -30),
        within(round(rsrq * step, 1), -50, 25),
        within(sinr, -40, 60),
        _code(snr),
    )


def _scaled(text: str, step: float) -> float | None:
    found = decimal(text)
    return None if found is None else round(found * step, 1)


def _code(text: str) -> int | None:
    """A whole number that means something: −3276 and −32768 do not."""
    return code(text, -3000, 3000)
