"""The driver of Alcatel's sticks. For quantities their MBIM firmware is polled through ModemManager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.alcatel.decode import decode
from tandem.modem.base import Identity, Reading


@dataclass(frozen=True)
class Alcatel:
    """One page a poll, of which technology and state come; no AT command for the cell is known."""

    name: str = "alcatel"
    transport: str = "http"
    reads: tuple[str, ...] = ()

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """None: nothing is switched on."""
        return ()

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("GET /goform/getWanInfo",)

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name or the models'."""
        return identity.says("alcatel", "IK40", "IK41")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``alcatel.decode``."""
        return decode(responses)


DRIVER = Alcatel()
