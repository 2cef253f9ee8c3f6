"""An application at the HTTP edge that a server.toml describes: its port, its certificate, its limits, its rates."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace

from starlette.types import ASGIApp

from tandem_server.cli.bounds import connection_limits, enough_descriptors, probe_rates
from tandem_server.cli.configuration import ServerConfig
from tandem_server.cli.stop import EnvironmentLacks
from tandem_server.endpoint.listener import ListenError, listen
from tandem_server.http.certificate import Certificate, CertificateError
from tandem_server.http.connections import ConnectionLimiter
from tandem_server.http.server import serve


def bind(host: str, port: int, shared: bool = False) -> socket.socket:
    """A listening TCP socket, ``shared`` with others of this account that say so; EnvironmentLacks when the port is in use or may not
    be had."""
    try:
        return listen(host, port, multipath=False, shared=shared)
    except ListenError as error:
        raise EnvironmentLacks(str(error)) from error


def serve_app(
    config: ServerConfig, app: ASGIApp, listener: socket.socket, when_ready: Callable[[], None], processes: int = 1
) -> None:
    """Serve ``app`` until SIGTERM or SIGINT. With several ``processes`` on one port each has its share of the connections."""
    whole = connection_limits(config.limits)
    limits = replace(
        whole,
        unauthenticated=-(-whole.unauthenticated // processes),
        unauthenticated_per_address=-(-whole.unauthenticated_per_address // processes),
        authenticated=-(-whole.authenticated // processes),
    )
    enough_descriptors(limits.authenticated + limits.unauthenticated + 3 * config.limits.connections)
    try:
        certificate = Certificate(config.tls.certificate, config.tls.key)
    except CertificateError as error:
        raise EnvironmentLacks(str(error)) from error
    rates = probe_rates(config.limits, config.probes)
    serve(app, listener, certificate, ConnectionLimiter(limits), rates, when_ready)


def announce(what: str, listener: socket.socket) -> None:
    """The line on stdout that says that ``what`` accepts work."""
    host, port = listener.getsockname()[:2]
    print(f"ready {what} {host}:{port}", flush=True)
