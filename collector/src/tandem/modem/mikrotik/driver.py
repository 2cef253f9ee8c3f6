"""The driver of MikroTik's modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.mikrotik.decode import decode


@dataclass(frozen=True)
class MikroTik:
    """Two command lines a poll: the R11e-LTE has no command of ZTE's, and tells what the standard tells all the same."""

    name: str = "mikrotik"
    transport: str = "at"
    reads: tuple[str, ...] = ()

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CSQ;+CEREG?;+COPS?", "AT+CESQ;+ZCAINFO?;+ZPAS?;+ZCELLINFO?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name or the model's."""
        return identity.says("mikrotik", "r11e")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``mikrotik.decode``."""
        return decode(responses, identity)


DRIVER = MikroTik()
