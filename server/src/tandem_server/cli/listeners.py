"""Of every listener of the server: its socket, and the limits that ``[limits]`` sets it."""

from __future__ import annotations

import logging
import resource
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace

from starlette.types import ASGIApp

from tandem_server.cli.configuration import Bounds, ServerConfig
from tandem_server.endpoint.listener import listen
from tandem_server.endpoint.sessions import Share
from tandem_server.http.certificate import Certificate
from tandem_server.http.connections import ConnectionLimiter, ConnectionLimits
from tandem_server.http.rates import ProbeRates, RateShare

_LOG = logging.getLogger("tandem.serve")
_FURTHER = 128
"""File descriptors besides connections: the registry's files, pipes, the database's connections."""


def bind(host: str, port: int, shared: bool = False) -> socket.socket:
    """A listening TCP socket, ``shared`` with others of this account that say so; ListenError when the port is in use or may not be
    had."""
    return listen(host, port, multipath=False, shared=shared)


def announce(what: str, listener: socket.socket) -> None:
    """The line on stdout that says that ``what`` accepts work."""
    host, port = listener.getsockname()[:2]
    print(f"ready {what} {host}:{port}", flush=True)


def serve_app(
    config: ServerConfig, app: ASGIApp, listener: socket.socket, when_ready: Callable[[], None], processes: int = 1
) -> None:
    """Serve ``app`` over TLS until SIGTERM or SIGINT. With several ``processes`` on one port each has its share of the connections.
    CertificateError."""
    from tandem_server.http.server import serve  # uvicorn, of no use to the processes that measure

    whole = connection_limits(config.limits)
    limits = replace(
        whole,
        unauthenticated=-(-whole.unauthenticated // processes),
        unauthenticated_per_address=-(-whole.unauthenticated_per_address // processes),
        authenticated=-(-whole.authenticated // processes),
    )
    enough_descriptors(limits.authenticated + limits.unauthenticated + 3 * config.limits.connections)
    certificate = Certificate(config.tls.certificate, config.tls.key)
    rates = probe_rates(config.limits, config.probes)
    serve(app, listener, certificate, ConnectionLimiter(limits), rates, when_ready)


def connection_limits(bounds: Bounds) -> ConnectionLimits:
    """Of the HTTPS listeners."""
    return ConnectionLimits(
        unauthenticated=bounds.https_strangers,
        unauthenticated_per_address=bounds.https_strangers_per_address,
        authenticated=bounds.https_connections,
        authenticated_per_probe=bounds.https_connections_per_probe,
        new_per_minute=bounds.new_connections_per_address,
        failures_per_minute=bounds.failures_per_address,
        head_s=bounds.head_s,
        body_s=bounds.body_s,
    )


def measurement_bounds(bounds: Bounds) -> ConnectionLimits:
    """Of the measurement listeners. New ones are not counted: all kits of an operator may come from one address."""
    return ConnectionLimits(
        unauthenticated=bounds.connections,
        unauthenticated_per_address=bounds.connections_per_address,
        authenticated=bounds.connections,
        authenticated_per_probe=bounds.connections_per_probe,
        new_per_minute=10**6,
    )


def probe_rates(bounds: Bounds, shares: Mapping[str, Share]) -> ProbeRates:
    """Everybody's, and those of the probes that have their own."""
    everybody = RateShare(
        bounds.probe_requests_per_minute, bounds.probe_lines_per_minute, bounds.probe_sent_bytes_per_minute
    )
    return ProbeRates(everybody, shares)


def enough_descriptors(connections: int) -> None:
    """Raise this process's limit of file descriptors as far as needed and allowed; log when that is too little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _FURTHER
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    now = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, hard))
    except (OSError, ValueError):  # a service's filter forbids it: what the unit gave holds
        now = soft
    if now < needed:
        _LOG.warning(
            "%d file descriptors allowed, %d connections configured; hint: LimitNOFILE=%d, or lower [limits] https_connections",
            now, connections, needed,
        )  # fmt: skip
