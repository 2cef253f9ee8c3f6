"""Which scale Quectel's SINR is in.

+QENG prints an LTE cell's SINR in one of three scales, by model and firmware: dB as it is (−20 to 30), fifths (v/5 − 20, v 0 to
250), or steps of two (2v − 20, v 0 to 25). +QCSQ's is fifths everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from tandem.modem.quectel.further import CAT_M, NB_IOT
from tandem.modem.scalars import at, code

LOWEST_DB, HIGHEST_DB = -20.0, 30.0
"""The range of all three scales. What a maker prints as it is may go somewhat beyond."""

MARGIN_DB = 10.0
"""How far beyond."""

AGREE_DB = 3.0
"""A reading of +QENG's SINR counts as agreeing with +QCSQ's when they are this near: they are a few milliseconds apart."""

_LTE = ("LTE", *CAT_M, *NB_IOT)


def lte_sinr_db(found: int | None, qcsq: Sequence[str]) -> float | None:
    """SINR of an LTE cell in dB. ``found``: +QENG's number; ``qcsq``: +QCSQ's values.

    +QCSQ decides: the nearest of the three scales when one is near enough, else its own value. Without it a number that only
    one scale can have tells its scale: below 0 it is dB, beyond 40 it is fifths. In between nothing tells it: None.
    """
    asked = code(at(qcsq, 3), 0, 250) if at(qcsq, 0).upper() in _LTE else None
    if asked is not None:
        judge = round(asked / 5 - 20, 1)
        if found is None:
            return judge
        nearest = min(_scales(found), key=lambda scaled: abs(scaled - judge), default=judge)
        return nearest if abs(nearest - judge) <= AGREE_DB else judge
    possible = _scales(found) if found is not None else []
    return possible[0] if len(possible) == 1 else None


def nr_sinr_db(found: int | None) -> float | None:
    """SINR of a standalone NR cell as +QCSQ prints it: dB or, on other firmware, fifths. None where both are possible."""
    possible = [] if found is None else [*_as_is(found), *_fifths(found)]
    return possible[0] if len(possible) == 1 else None


def _scales(found: int) -> list[float]:
    return [*_as_is(found), *_fifths(found), *([2.0 * found - 20] if 0 <= found <= 25 else [])]


def _as_is(found: int) -> list[float]:
    return [float(found)] if LOWEST_DB - MARGIN_DB <= found <= HIGHEST_DB + MARGIN_DB else []


def _fifths(found: int) -> list[float]:
    return [round(found / 5 - 20, 1)] if 0 <= found <= 250 else []
