"""The driver of Huawei's HiLink sticks: pages of their web server, which the HTTP transport asks for within a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.hilink.decode import decode, fault

REBOOT = 'POST /api/device/control <?xml version="1.0" encoding="UTF-8"?><request><Control>1</Control></request>'


@dataclass(frozen=True)
class HiLink:
    """Three pages a poll. Session and token (``GET /api/webserver/SesTokInfo``) are the transport's."""

    name: str = "hilink"
    transport: str = "http"
    reads: tuple[str, ...] = ()
    reboot_command: str = REBOOT

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """None: nothing is switched on."""
        return ()

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return ("GET /api/device/signal", "GET /api/monitoring/status", "GET /api/net/current-plmn")

    def matches(self, identity: Identity) -> bool:
        """Never by what an AT port says, unless it is named so; a web server is known by which family's pages it answers."""
        return identity.says("hilink")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``hilink.decode``."""
        return decode(responses)

    def fault(self, response: Response) -> str | None:
        """See ``hilink.decode.fault``."""
        return fault(response)


DRIVER = HiLink()
