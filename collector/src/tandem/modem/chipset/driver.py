"""The driver of modules that have their chipset's own commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.chipset.decode import decode


@dataclass(frozen=True)
class Chipset:
    """The chipset's command for the cell, and the standard's beside it."""

    name: str = "chipset"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT%XMONITOR", "AT+SQNMONI=9", "AT+EEMGINFO?;+EEMLTESVC?")

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2", "AT+COPS=3,2")

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """By chipset; one that has not told its name is asked as an Air7xx. +EEMLTESVC comes unasked after +EEMGINFO: it is only read."""
        own = "AT%XMONITOR" if _nordic(identity) else "AT+SQNMONI=9" if _sequans(identity) else "AT+CCED=0,1"
        return (own, "AT+CSQ;+CESQ", "AT+CEREG?;+COPS?")

    def matches(self, identity: Identity) -> bool:
        """By the chipset's maker, or OpenLuat's names."""
        return _nordic(identity) or _sequans(identity) or identity.says("openluat", "airm2m")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``chipset.decode``."""
        return decode(responses)


def _nordic(identity: Identity) -> bool:
    return identity.says("nordic semiconductor", "nrf91")


def _sequans(identity: Identity) -> bool:
    return identity.says("sequans")


DRIVER = Chipset()
