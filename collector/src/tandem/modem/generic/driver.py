"""The driver of last resort: standard commands only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.generic.decode import decode


@dataclass(frozen=True)
class Generic:
    """Three command lines a poll: what a modem may refuse stands last in its line, or alone, so that it takes nothing with it."""

    name: str = "generic"
    transport: str = "at"

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+CREG=2", "AT+C5GREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CSQ;+CESQ", "AT+CEREG?;+COPS?;+CREG?", "AT+C5GREG?")

    def matches(self, identity: Identity) -> bool:
        """Always: the registry asks it last."""
        return True

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``generic.decode``."""
        return decode(responses)


DRIVER = Generic()
