"""The driver of Foxconn's modules, which Dell and others sell under their own names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.foxconn.decode import decode

_MODELS = ("t99w", "t77w968", "dw5821e", "dw5829e", "dw5930e", "dw5932e", "dw5933e", "dw5934e")


@dataclass(frozen=True)
class Foxconn:
    """The cell by ^DEBUG?, the standard's commands beside it."""

    name: str = "foxconn"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT^CA_INFO?",)

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT^DEBUG?", "AT+CSQ;+CEREG?;+COPS?")

    def matches(self, identity: Identity) -> bool:
        """By the model, as the manufacturer is the chipset's, Dell or nobody; MV31 says that it is Cinterion's."""
        return identity.says(*_MODELS)

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``foxconn.decode``."""
        return decode(responses)


DRIVER = Foxconn()
