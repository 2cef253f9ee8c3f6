"""What a modem tells by the standard's commands alone: see ``ts27007.standard``."""

from __future__ import annotations

from tandem.modem.base import Driver
from tandem.modem.ts27007 import decode_standard

# Two command lines, so that a modem that refuses +CESQ still tells its cell. What may be refused stands last in its line: the answers
# before it are there all the same, and a modem that knows +C5GREG knows +CESQ. The registry asks it last.
DRIVER = Driver(
    "generic",
    setup=("AT+CEREG=2", "AT+CREG=2", "AT+C5GREG=2", "AT+COPS=3,2"),
    poll=("AT+CSQ;+CESQ;+C5GREG?", "AT+CEREG?;+COPS?;+CREG?"),
    decode=decode_standard,
    knows=lambda _: True,
    reads=("AT+CGREG?",),
)
