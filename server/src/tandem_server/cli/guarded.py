"""An application behind the door that a server.toml describes: its certificate, its bounds, its rates."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace

from starlette.types import ASGIApp

from tandem_server.cli.bounds import door_bounds, probe_rates
from tandem_server.cli.certificate import Certificate
from tandem_server.cli.configuration import ServerConfig
from tandem_server.cli.descriptors import enough_descriptors
from tandem_server.cli.https import serve_https
from tandem_server.door import Door


def serve_guarded(
    config: ServerConfig, app: ASGIApp, listener: socket.socket, when_ready: Callable[[], None], processes: int = 1
) -> None:
    """Serve ``app`` until SIGTERM or SIGINT. With several ``processes`` on one port each has its share of the connections."""
    bounds = config.limits
    whole = door_bounds(bounds)
    door = replace(
        whole,
        strangers=-(-whole.strangers // processes),
        strangers_per_address=-(-whole.strangers_per_address // processes),
        known=-(-whole.known // processes),
    )
    enough_descriptors(door.known + door.strangers + 3 * bounds.connections)
    certificate = Certificate(config.tls.certificate, config.tls.key)
    serve_https(app, listener, certificate, Door(door), probe_rates(bounds, config.probes), when_ready)
