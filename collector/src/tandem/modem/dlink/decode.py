"""D-Link DWM-222: nothing but the standard's commands (3GPP TS 27.007)."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Reading
from tandem.modem.ts27007 import all_lines, standard


def decode(responses: Sequence[Response]) -> Reading:
    """RSSI from +CSQ, levels as codes from +CESQ, the cell from +CEREG, PLMN from +COPS. No SINR, PCI, EARFCN, band or RRC."""
    return standard(all_lines(responses))
