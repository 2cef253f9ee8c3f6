"""The driver of SIMCom's modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.simcom.decode import decode


@dataclass(frozen=True)
class Simcom:
    """Two command lines a poll: the serving cell, and what the standard tells beside it: searching or denied, and RSSI where
    +CPSI has none."""

    name: str = "simcom"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT+CENG?",)

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2",)

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CPSI?", "AT+CSQ;+CEREG?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name, which the model's often repeats; of A7600, A7670 and their sisters what is left of it is
        ``INCORPORATED``."""
        return identity.says("simcom") or identity.manufacturer.upper().strip() == "INCORPORATED"

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``simcom.decode``."""
        return decode(responses)


DRIVER = Simcom()
