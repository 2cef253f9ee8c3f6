"""The driver of Huawei's HiLink sticks: pages of their web server, which the HTTP transport asks for within a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.hilink.decode import decode


@dataclass(frozen=True)
class HiLink:
    """Three pages a poll. Session and token (``GET /api/webserver/SesTokInfo``) are the transport's."""

    name: str = "hilink"
    transport: str = "http"
    reads: tuple[str, ...] = ()

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


DRIVER = HiLink()
