"""The driver of u-blox's modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.ublox.decode import decode


@dataclass(frozen=True)
class Ublox:
    """The serving cell in +UCGED's mode 2, and the standard's own commands for the levels of 3G, state and network."""

    name: str = "ublox"
    transport: str = "at"
    reads: tuple[str, ...] = ()

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+UCGED=2", "AT+CEREG=2", "AT+CREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+UCGED?", "AT+CSQ;+CESQ", "AT+CEREG?;+COPS?;+CREG?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name, with or without its hyphen."""
        return identity.says("u-blox", "ublox")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``ublox.decode``."""
        return decode(responses)


DRIVER = Ublox()
