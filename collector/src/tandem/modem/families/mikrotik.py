"""MikroTik's R11e-LTE6: +CESQ of the standard, +ZCAINFO, +ZPAS and +ZCELLINFO as ZTE's.

Source: public readers that ask this module and ZTE's routers the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading, device
from tandem.modem.families.zte import order_of, service, with_cell
from tandem.modem.ts27007 import all_lines, fill, last_values


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Levels as codes from +CESQ, the cell from +CEREG and ZTE's commands. SINR and RRC state are not reported."""
    lines = all_lines(responses)
    state, technology = service(last_values(lines, "+ZPAS"))
    reading = fill(replace(Reading(), rat=technology, state=state or "unknown"), lines)
    return with_cell(reading, lines, order_of(identity))


# Two command lines: the R11e-LTE has no command of ZTE's, and tells what the standard tells all the same.
# Which interfaces are the AT ports is not published: the port is named in the configuration.
DRIVER = Driver(
    "mikrotik",
    poll=("AT+CSQ;+CEREG?;+COPS?", "AT+CESQ;+ZCAINFO?;+ZPAS?;+ZCELLINFO?"),
    decode=decode,
    knows=("mikrotik", "r11e"),
    devices=(device("2cd2:0004", "R11e-LTE6"), device("2cd2:0001", "R11e-LTE")),
)
