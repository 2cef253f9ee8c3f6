"""The driver of Telit's modules, and of the LN940 and its sisters, which Telit sold with another maker's commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.telit.decode import decode

_CARET_MODELS = ("ln940", "ln960", "t77w676")


@dataclass(frozen=True)
class Telit:
    """#RFSTS and #MONI; on the LN940 ^CA_INFO? and ^RFSTS?. Either may be refused."""

    name: str = "telit"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT#SERVINFO",)

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """``#MONI=0``: the serving cell, in one line."""
        standard = ("AT+CEREG=2", "AT+COPS=3,2")
        return standard if _carets(identity) else ("AT#MONI=0", *standard)

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The maker's own, then what the standard tells beside it."""
        if _carets(identity):
            return ("AT^CA_INFO?;^RFSTS?", "AT+CEREG?;+COPS?")
        return ("AT#RFSTS", "AT#MONI", "AT+CEREG?;+COPS?")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name, but not the former Cinterion modules; the LN940's sisters by their model."""
        return (identity.says("telit") and not identity.says("cinterion")) or _carets(identity)

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``telit.decode``."""
        return decode(responses)


def _carets(identity: Identity) -> bool:
    return identity.model.lower().startswith(_CARET_MODELS)


DRIVER = Telit()
