"""Downlink channel numbers to bands and frequencies, bandwidths to resource blocks; how much of a sector's power arrives."""

from __future__ import annotations

import numpy as np

from tandem_bench.scenario.chance import Array

_BANDS = (
    # band, lowest downlink frequency in MHz, first and last EARFCN: 3GPP TS 36.101 table 5.7.3-1
    (1, 2110.0, 0, 599), (2, 1930.0, 600, 1199), (3, 1805.0, 1200, 1949), (4, 2110.0, 1950, 2399), (5, 869.0, 2400, 2649),
    (7, 2620.0, 2750, 3449), (8, 925.0, 3450, 3799), (12, 729.0, 5010, 5179), (13, 746.0, 5180, 5279),
    (17, 734.0, 5730, 5849), (20, 791.0, 6150, 6449), (25, 1930.0, 8040, 8689), (26, 859.0, 8690, 9039),
    (28, 758.0, 9210, 9659), (38, 2570.0, 37750, 38249), (40, 2300.0, 38650, 39649), (41, 2496.0, 39650, 41589),
)  # fmt: skip

RESOURCE_BLOCKS = {1.4: 6, 3.0: 15, 5.0: 25, 10.0: 50, 15.0: 75, 20.0: 100}
"""Channel bandwidth in MHz to resource blocks: 3GPP TS 36.101 table 5.6-1."""

_PROBE_HEIGHT_M = 1.5
_SITE_HEIGHT_M = {"uma": 25.0, "umi": 10.0}
_SPEED_OF_LIGHT_M_S = 3e8

ANTENNA_GAIN_DBI = 15.0
_BEAMWIDTH_DEG = 70.0
_FRONT_TO_BACK_DB = 20.0
_NEAREST_M = 10.0


def band_of(earfcn: int) -> int | None:
    """The band that holds downlink channel ``earfcn``; None when no band of the table does."""
    return next((band for band, _, first, last in _BANDS if first <= earfcn <= last), None)


def frequency_ghz(earfcn: int) -> float:
    """Carrier frequency in GHz: F = F_low + 0.1·(N − N_offset) MHz. KeyError outside the table."""
    for _, low_mhz, first, last in _BANDS:
        if first <= earfcn <= last:
            return (low_mhz + 0.1 * (earfcn - first)) / 1000
    raise KeyError(earfcn)


def path_loss_db(kind: str, distance_m: Array, frequency_ghz: float) -> Array:
    """Median loss in dB without line of sight, ``kind`` uma or umi: 3GPP TR 38.901 table 7.4.1-1 (0.5 to 100 GHz, to 5 km)."""
    height = _SITE_HEIGHT_M[kind]
    d2 = np.maximum(distance_m, _NEAREST_M)
    d3 = np.hypot(d2, height - _PROBE_HEIGHT_M)
    if kind == "uma":
        far = 13.54 + 39.08 * np.log10(d3) + 20 * np.log10(frequency_ghz) - 0.6 * (_PROBE_HEIGHT_M - 1.5)
        near_a, near_b = 28.0, 22.0
    else:
        far = 35.3 * np.log10(d3) + 22.4 + 21.3 * np.log10(frequency_ghz) - 0.3 * (_PROBE_HEIGHT_M - 1.5)
        near_a, near_b = 32.4, 21.0
    # With line of sight: one slope up to the breakpoint, 40 dB a decade beyond it.
    breakpoint_m = 4 * (height - 1) * (_PROBE_HEIGHT_M - 1) * frequency_ghz * 1e9 / _SPEED_OF_LIGHT_M_S
    correction = 9.0 if kind == "uma" else 9.5
    height_term = correction * np.log10(breakpoint_m**2 + (height - _PROBE_HEIGHT_M) ** 2)
    sight_near = near_a + near_b * np.log10(d3) + 20 * np.log10(frequency_ghz)
    sight_far = near_a + 40 * np.log10(d3) + 20 * np.log10(frequency_ghz) - height_term
    sight = np.where(d2 <= breakpoint_m, sight_near, sight_far)
    loss: Array = np.maximum(sight, far)
    return loss


def antenna_gain_db(off_axis_deg: Array) -> Array:
    """Gain in dBi towards ``off_axis_deg`` (any angle): 3GPP TR 36.942 4.2.1, 70° beam, 20 dB front to back."""
    off = (off_axis_deg + 180.0) % 360.0 - 180.0
    return ANTENNA_GAIN_DBI - np.minimum(12.0 * (off / _BEAMWIDTH_DEG) ** 2, _FRONT_TO_BACK_DB)
