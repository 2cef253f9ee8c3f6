"""What a modem tells by the standard's commands alone: see ``ts27007.standard``."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.ts27007 import all_lines, standard


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """RSSI from +CSQ, levels from +CESQ, cell from the registrations, PLMN from +COPS.

    The standard tells neither LTE's SINR nor PCI, EARFCN and band, nor whether RRC is connected: these stay None and a
    registered modem's state is ``unknown``.
    """
    return standard(all_lines(responses))


# Two command lines, so that a modem that refuses +CESQ still tells its cell. What may be refused stands last in its line: the answers
# before it are there all the same, and a modem that knows +C5GREG knows +CESQ. The registry asks it last.
DRIVER = Driver(
    "generic",
    setup=("AT+CEREG=2", "AT+CREG=2", "AT+C5GREG=2", "AT+COPS=3,2"),
    poll=("AT+CSQ;+CESQ;+C5GREG?", "AT+CEREG?;+COPS?;+CREG?"),
    decode=decode,
    knows=lambda _: True,
    reads=("AT+CGREG?",),
)
