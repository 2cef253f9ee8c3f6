"""The driver of Quectel's modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.quectel.decode import decode


@dataclass(frozen=True)
class Quectel:
    """One command line a poll: the serving cell, and +QCSQ to know the scale of its SINR."""

    name: str = "quectel"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT+QNWINFO", "AT+QCAINFO", "AT+QRSRP", "AT+QRSRQ", "AT+QSINR")

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2",)

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ('AT+QENG="servingcell";+QCSQ',)

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name."""
        return identity.says("quectel")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``quectel.decode``."""
        return decode(responses, identity)


DRIVER = Quectel()
