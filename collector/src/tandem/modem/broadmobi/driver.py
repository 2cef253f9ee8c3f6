"""The driver of BroadMobi's modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.broadmobi.decode import decode


@dataclass(frozen=True)
class BroadMobi:
    """Two command lines a poll: the standard's, and the cell."""

    name: str = "broadmobi"
    transport: str = "at"
    reads: tuple[str, ...] = ()

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CSQ;+CEREG?;+COPS?", "AT+BMTCELLINFO")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name or the model's."""
        return identity.says("broadmobi", "bm806") and not identity.says("d-link", "dwm-222")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``broadmobi.decode``."""
        return decode(responses)


DRIVER = BroadMobi()
