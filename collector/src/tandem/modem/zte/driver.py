"""The driver of ZTE's and GosunCn's AT modems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.zte.decode import decode


@dataclass(frozen=True)
class Zte:
    """Each of ZTE's own commands in a line of its own: every model refuses some of them."""

    name: str = "zte"
    transport: str = "at"
    reads: tuple[str, ...] = ()

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CSQ;+CEREG?;+COPS?", "AT+CESQ", "AT+ZRSSI", "AT+ZPAS?", "AT+ZCELLINFO?", "AT+ZCAINFO?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name; a device that is asked by HTTP says ``ZTE web``."""
        return identity.says("zte", "gosuncn") and not identity.says("zte web")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``zte.decode``."""
        return decode(responses, identity)


DRIVER = Zte()
