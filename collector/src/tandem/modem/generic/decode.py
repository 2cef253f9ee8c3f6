"""What a modem tells by the standard's commands alone: see ``ts27007.standard``."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Reading
from tandem.modem.ts27007 import all_lines, standard


def decode(responses: Sequence[Response]) -> Reading:
    """RSSI from +CSQ, levels from +CESQ, cell from the registrations, PLMN from +COPS.

    The standard tells neither LTE's SINR nor PCI, EARFCN and band, nor whether RRC is connected: these stay None and a
    registered modem's state is ``unknown``.
    """
    return standard(all_lines(responses))
