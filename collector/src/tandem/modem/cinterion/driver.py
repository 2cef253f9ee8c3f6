"""The driver of Cinterion's modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.cinterion.decode import decode


@dataclass(frozen=True)
class Cinterion:
    """The cell by ^SMONI, on MV31 by ^DEBUG?; the standard's commands beside it."""

    name: str = "cinterion"
    transport: str = "at"
    reads: tuple[str, ...] = ()

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """By model; one that has not told its name is asked ^SMONI."""
        if identity.says("MV31", "MV32"):
            return ("AT^DEBUG?", "AT+CSQ;+CEREG?;+COPS?")
        return ("AT^SMONI", "AT+CSQ;+CEREG?;+COPS?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's names over the years."""
        return identity.says("cinterion", "gemalto", "thales")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``cinterion.decode``."""
        return decode(responses)


DRIVER = Cinterion()
