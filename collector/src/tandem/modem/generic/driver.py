"""The driver of last resort: standard commands only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.generic.decode import decode


@dataclass(frozen=True)
class Generic:
    """Two command lines a poll, so that a modem that refuses +CESQ still tells its cell. What may be refused stands last in its
    line: the answers before it are there all the same, and a modem that knows +C5GREG knows +CESQ."""

    name: str = "generic"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT+CGREG?",)

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+CREG=2", "AT+C5GREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CSQ;+CESQ;+C5GREG?", "AT+CEREG?;+COPS?;+CREG?")

    def matches(self, identity: Identity) -> bool:
        """Always: the registry asks it last."""
        return True

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``generic.decode``."""
        return decode(responses)


DRIVER = Generic()
