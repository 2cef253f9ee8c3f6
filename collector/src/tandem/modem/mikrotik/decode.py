"""MikroTik's R11e-LTE6: +CESQ of the standard, +ZCAINFO, +ZPAS and +ZCELLINFO as ZTE's.

Source: public readers that ask this module and ZTE's routers the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.ts27007 import all_lines, fill, last_values
from tandem.modem.zte.cells import service
from tandem.modem.zte.decode import order_of, with_cell


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Levels as codes from +CESQ, the cell from +CEREG and ZTE's commands. SINR and RRC state are not told."""
    lines = all_lines(responses)
    state, technology = service(last_values(lines, "+ZPAS"))
    reading = fill(replace(Reading(), rat=technology, state=state or "unknown"), lines)
    return with_cell(reading, lines, order_of(identity))
