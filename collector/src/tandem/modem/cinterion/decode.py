"""Cinterion's cell commands by model, with +CSQ, +CEREG and +COPS of the standard."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Reading
from tandem.modem.cinterion import smoni
from tandem.modem.foxconn.decode import debug
from tandem.modem.ts27007 import all_lines, fill, last_values


def decode(responses: Sequence[Response]) -> Reading:
    """Whichever command answered. ^SMONI tells the RRC state and no SINR, ^DEBUG? a SINR and no state."""
    lines = all_lines(responses)
    row = last_values(lines, "^SMONI")
    return fill(smoni.decode(row) if row else debug(lines), lines)
