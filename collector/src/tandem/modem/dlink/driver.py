"""The driver of D-Link's stick. Hardware A2 is asked through ModemManager where its AT port is not found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.dlink.decode import decode


@dataclass(frozen=True)
class DLink:
    """Two command lines a poll, so that a firmware that refuses +CESQ still tells its cell."""

    name: str = "dlink"
    transport: str = "at"
    reads: tuple[str, ...] = ()

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CSQ;+CESQ", "AT+CEREG?;+COPS?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name or the model's."""
        return identity.says("d-link", "dwm-222")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``dlink.decode``."""
        return decode(responses)


DRIVER = DLink()
