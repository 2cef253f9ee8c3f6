"""Geohash: a place as letters, each of which halves the cell five times, longitude first (base 32 without a, i, l, o). Pure."""

from __future__ import annotations

_LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
_METRES_A_DEGREE = 111_195.0
"""Of latitude, on a sphere of 6371 km."""

MOST_LETTERS = 6
"""A cell of 0.0055 by 0.011 degrees: 0.61 km high, 1.2 km wide at the equator."""


def geohash(latitude_deg: float, longitude_deg: float, letters: int = MOST_LETTERS) -> str:
    """The cell that holds the place; -90 to 90, -180 to 180 (180 and the north pole belong to the last cell)."""
    bits = 5 * letters
    rows, columns = 1 << (bits // 2), 1 << (bits - bits // 2)
    row = min(rows - 1, int((latitude_deg + 90.0) / 180.0 * rows))
    column = min(columns - 1, int((longitude_deg + 180.0) / 360.0 * columns))
    mixed = 0
    for bit in range(bits):
        # From the most significant: columns and rows in turn.
        source, place = (column, bits - bits // 2) if bit % 2 == 0 else (row, bits // 2)
        mixed = mixed << 1 | source >> (place - 1 - bit // 2) & 1
    return "".join(_LETTERS[mixed >> shift & 31] for shift in range(bits - 5, -1, -5))


def letters_for(error_m: float) -> int:
    """The most letters, 1 to ``MOST_LETTERS``, whose cells are no lower than ``error_m``: a smaller cell would claim to know better."""
    for letters in range(MOST_LETTERS, 1, -1):
        if 180.0 / (1 << (5 * letters // 2)) * _METRES_A_DEGREE >= error_m:
            return letters
    return 1
