"""The driver of Option's modems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.option.decode import decode


@dataclass(frozen=True)
class Option:
    """Option's own commands and the younger ones of the standard in lines of their own: old firmware refuses some."""

    name: str = "option"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT_OSIGQ?",)

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CREG=2", "AT+CGREG=2", "AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CSQ;+CREG?;+CGREG?;+COPS?", "AT_OWCTI?", "AT_OCTI?", "AT+CESQ", "AT+CEREG?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name, whole: it is a word that others may use."""
        return identity.manufacturer.lower().startswith("option")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``option.decode``."""
        return decode(responses)


DRIVER = Option()
