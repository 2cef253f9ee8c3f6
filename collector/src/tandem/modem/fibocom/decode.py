"""Fibocom's cell commands by model: Intel's +XMCI on L8xx, +GTCCINFO on FM350 and its kin; the rest by the standard."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.fibocom import gtccinfo, xmm
from tandem.modem.ts27007 import all_lines, fill


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Whichever of the two kinds of command answered; TAC, ECI and PLMN from +CEREG and +COPS where it does not tell them.

    Neither tells whether RRC is connected: a registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    reading = gtccinfo.decode(lines, identity)
    if reading.rat is None:
        reading = xmm.decode(lines)
    return fill(reading, lines)
