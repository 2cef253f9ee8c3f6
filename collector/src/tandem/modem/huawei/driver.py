"""The driver of Huawei's AT modems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.huawei.decode import decode


@dataclass(frozen=True)
class Huawei:
    """Two command lines a poll: ^MONSC is refused by some firmware and then must not take the others with it."""

    name: str = "huawei"
    transport: str = "at"
    reads: tuple[str, ...] = ("AT^SYSINFOEX", "AT^LTERSRP?", "AT^CERSSI?", "AT^RSSI", "AT^HFREQINFO?")

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT+CEREG=2",)

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("AT^HCSQ?;+CEREG?", "AT^MONSC")

    def matches(self, identity: Identity) -> bool:
        """By the manufacturer's name, MT5700M by its model, as TD Tech sells it; a stick that is asked by HTTP says ``HiLink`` too."""
        return identity.says("huawei", "td tech", "mt5700") and not identity.says("hilink")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``huawei.decode``."""
        return decode(responses)


DRIVER = Huawei()
