"""How much of a sector's power arrives: path loss and antenna pattern."""

from __future__ import annotations

import numpy as np

from tandem_bench.scenario.chance import Array

_PROBE_HEIGHT_M = 1.5
_SITE_HEIGHT_M = {"uma": 25.0, "umi": 10.0}
_SPEED_OF_LIGHT_M_S = 3e8

ANTENNA_GAIN_DBI = 15.0
_BEAMWIDTH_DEG = 70.0
_FRONT_TO_BACK_DB = 20.0
_NEAREST_M = 10.0


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
