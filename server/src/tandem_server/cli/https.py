"""Runs an ASGI application over TLS until SIGTERM or Ctrl-C. Shared by the gateway and the control channel."""

from __future__ import annotations

import errno
import logging
import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from tandem_server.cli.stop import EnvironmentLacks
from tandem_server.endpoint.listener import family_of


class _Announcing(uvicorn.Server):
    """Says when it accepts work."""

    def __init__(self, config: uvicorn.Config, when_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._when_ready = when_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._when_ready()


def bind(host: str, port: int) -> socket.socket:
    """A bound TCP socket; EnvironmentLacks when the port is in use or may not be had."""
    host, family = family_of(host, multipath=False)
    # The protocol must be named: asyncio turns Nagle's algorithm off only for sockets that say that they are TCP, and with
    # it every answer would wait 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        mend = "end what listens there, or set another port" if error.errno == errno.EADDRINUSE else "correct [listen]"
        raise EnvironmentLacks(f"{host}:{port}: {error.strerror}; mend: {mend}") from error
    return listener


def serve_https(
    app: ASGIApp, listener: socket.socket, certificate: Path, key: Path, when_ready: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress may finish for 10 s. ``when_ready`` is called once."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=10,
        limit_concurrency=512,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentLacks(f"{certificate}, {key}: {error}; mend: tandem-server tls") from error
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # uvicorn raises the signal again after it has shut down, for handlers of before: here that must be the end of it.
    before = {number: signal.signal(number, _heard) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _Announcing(config, when_ready).run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def announce(what: str, listener: socket.socket) -> None:
    """The line on stdout that says that ``what`` accepts work."""
    host, port = listener.getsockname()[:2]
    print(f"ready {what} {host}:{port}", flush=True)


def _heard(_number: int, _frame: FrameType | None) -> None:
    logging.getLogger("tandem.serve").info("stopping")
