"""Runs an ASGI application until SIGTERM or Ctrl-C: over TLS the gateway and the control channel, without it the pages on loopback."""

from __future__ import annotations

import asyncio
import functools
import logging
import signal
import socket
from collections.abc import Callable
from dataclasses import replace

import uvicorn
from starlette.types import ASGIApp

from tandem.notify import Notify
from tandem_server.cli.configuration import ServerConfig
from tandem_server.cli.listeners import Certificate, door_bounds, enough_descriptors, probe_rates
from tandem_server.door import Door, ProbeRates
from tandem_server.door.greeting import Greeter
from tandem_server.door.protocol import OnceAMinute, guarded
from tandem_server.door.visit import AtTheDoor

_LOG = logging.getLogger("tandem.serve")
_CERTIFICATE_S = 5.0
"""How often the certificate's files are looked at."""


class _Guarded(uvicorn.Server):
    """Accepts through the door, says when it does, takes a renewed certificate over, and reports to the service manager that it lives."""

    def __init__(
        self,
        config: uvicorn.Config,
        when_ready: Callable[[], None],
        certificate: Certificate | None,
        listening: socket.socket,
        door: Door,
    ) -> None:
        super().__init__(config)
        self._when_ready, self._certificate, self._listening, self._door = when_ready, certificate, listening, door
        self._notify = Notify.of_environment()
        self._greeter: Greeter | None = None
        self._looks: asyncio.TimerHandle | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)  # none: uvicorn does not listen
        loop = asyncio.get_running_loop()
        protocol: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        factory = functools.partial(
            protocol, config=self.config, server_state=self.server_state, app_state=self.lifespan.state, _loop=loop
        )
        context = None
        if self._certificate is not None:
            loop.add_signal_handler(signal.SIGHUP, self._certificate.refresh)
            self._look(loop, self._certificate)
            context = self._certificate.context
        self._greeter = Greeter(self._listening, self._door, context, factory)
        self._when_ready()
        self._notify.ready()

    async def on_tick(self, counter: int) -> bool:
        # Called ten times a second, by the loop that answers probes: when it hangs, nothing reports that it lives.
        self._notify.alive()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._notify.stopping()
        if self._looks is not None:
            self._looks.cancel()
        if self._greeter is not None:
            self._greeter.stop()
        await super().shutdown(sockets)

    def _look(self, loop: asyncio.AbstractEventLoop, certificate: Certificate) -> None:
        certificate.refresh(only_if_changed=True)
        self._looks = loop.call_later(_CERTIFICATE_S, self._look, loop, certificate)


def serve_guarded(
    config: ServerConfig, app: ASGIApp, listener: socket.socket, when_ready: Callable[[], None], processes: int = 1
) -> None:
    """Serve ``app`` over TLS behind the bounds that a server.toml describes. With several ``processes`` on one port each has its share of
    the connections."""
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
    serve_http(app, listener, certificate, Door(door), probe_rates(bounds, config.probes), when_ready)


def serve_http(
    app: ASGIApp,
    listener: socket.socket,
    certificate: Certificate | None,
    door: Door,
    rates: ProbeRates,
    when_ready: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress may finish for 10 s. ``when_ready`` is called once. SIGHUP: look at the
    certificate's files now. ``certificate`` None: plain HTTP, for loopback."""
    config = uvicorn.Config(
        AtTheDoor(app, door, rates),
        http=guarded(door),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=int(door.bounds.idle_s),
        timeout_graceful_shutdown=10,
        proxy_headers=False,  # a stranger's X-Forwarded-For must not become an address
    )
    config.load()
    errors = logging.getLogger("uvicorn.error")
    errors.setLevel(logging.WARNING)
    errors.addFilter(OnceAMinute())
    # uvicorn raises the signal again after it has shut down, for handlers of before: here that must be the end of it.
    stopping = {n: signal.signal(n, lambda *_: _LOG.info("stopping")) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        _Guarded(config, when_ready, certificate, listener, door).run(sockets=[])
    finally:
        for number, handler in stopping.items():
            signal.signal(number, handler)
