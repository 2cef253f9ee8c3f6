"""Downlink channel numbers to bands and frequencies, and bandwidths to resource blocks."""

from __future__ import annotations

_BANDS = (
    # band, lowest downlink frequency in MHz, first and last EARFCN: 3GPP TS 36.101 table 5.7.3-1
    (1, 2110.0, 0, 599), (2, 1930.0, 600, 1199), (3, 1805.0, 1200, 1949), (4, 2110.0, 1950, 2399), (5, 869.0, 2400, 2649),
    (7, 2620.0, 2750, 3449), (8, 925.0, 3450, 3799), (12, 729.0, 5010, 5179), (13, 746.0, 5180, 5279),
    (17, 734.0, 5730, 5849), (20, 791.0, 6150, 6449), (25, 1930.0, 8040, 8689), (26, 859.0, 8690, 9039),
    (28, 758.0, 9210, 9659), (38, 2570.0, 37750, 38249), (40, 2300.0, 38650, 39649), (41, 2496.0, 39650, 41589),
)  # fmt: skip

RESOURCE_BLOCKS = {1.4: 6, 3.0: 15, 5.0: 25, 10.0: 50, 15.0: 75, 20.0: 100}
"""Channel bandwidth in MHz to resource blocks: 3GPP TS 36.101 table 5.6-1."""


def band_of(earfcn: int) -> int | None:
    """The band that holds downlink channel ``earfcn``; None when no band of the table does."""
    return next((band for band, _, first, last in _BANDS if first <= earfcn <= last), None)


def frequency_ghz(earfcn: int) -> float:
    """Carrier frequency in GHz: F = F_low + 0.1·(N − N_offset) MHz. KeyError outside the table."""
    for _, low_mhz, first, last in _BANDS:
        if first <= earfcn <= last:
            return (low_mhz + 0.1 * (earfcn - first)) / 1000
    raise KeyError(earfcn)
