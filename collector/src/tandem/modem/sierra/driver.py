"""The driver of Sierra Wireless' modems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.sierra.decode import decode


@dataclass(frozen=True)
class Sierra:
    """Three command lines a poll: either text block may be refused, and the standard's own commands fill what both lack."""

    name: str = "sierra"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT!NRINFO?",)

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT!GSTATUS?", "AT!LTEINFO?", "AT+CEREG?;+COPS?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name."""
        return identity.says("sierra")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``sierra.decode``."""
        return decode(responses)


DRIVER = Sierra()
