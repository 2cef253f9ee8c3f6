"""The driver of Fibocom's modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.fibocom.decode import decode


@dataclass(frozen=True)
class Fibocom:
    """The standard's commands, and the model's own: L8xx have Intel's, the others +GTCCINFO."""

    name: str = "fibocom"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT+RSRP?", "AT+RSRQ?")

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """A model that has not told its name is asked as an L8xx, the most common one."""
        if identity.says("FM350", "FM150", "FM160", "FM190", "FM101"):
            return ("AT+GTCCINFO?", "AT+CSQ;+CESQ", "AT+CEREG?;+COPS?")
        return ("AT+XMCI=1", "AT+XCESQ?", "AT+CSQ;+CEREG?;+COPS?", "AT+XLEC?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name."""
        return identity.says("fibocom")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``fibocom.decode``."""
        return decode(responses, identity)


DRIVER = Fibocom()
