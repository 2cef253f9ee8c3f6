"""Runs an ASGI application until SIGTERM or Ctrl-C: over TLS the gateway and the control channel, without it the pages on loopback."""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from tandem.notify import Notify
from tandem_server.cli.certificate import Certificate
from tandem_server.cli.stop import EnvironmentLacks
from tandem_server.door import Door
from tandem_server.door.greeting import Greeter
from tandem_server.door.protocol import OnceAMinute, guarded
from tandem_server.door.rates import ProbeRates
from tandem_server.door.visit import AtTheDoor
from tandem_server.endpoint.listener import family_of

_CERTIFICATE_S = 5.0
"""How often the certificate's files are looked at."""


class _Guarded(uvicorn.Server):
    """Accepts through the door, says when it does, takes a renewed certificate over, and tells the service manager that it lives."""

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
            protocol,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            _loop=loop,
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
        # Called ten times a second, by the loop that answers probes: when it hangs, nobody is told that it lives.
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


def bind(host: str, port: int, shared: bool = False) -> socket.socket:
    """A bound TCP socket, ``shared`` with others of this account that say so; EnvironmentLacks when the port is in use or may not
    be had."""
    host, family = family_of(host, multipath=False)
    # The protocol must be named: asyncio turns Nagle's algorithm off only for sockets that say that they are TCP, and with
    # it every answer would wait 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        mend = "end what listens there, or set another port" if error.errno == errno.EADDRINUSE else "correct [listen]"
        raise EnvironmentLacks(f"{host}:{port}: {error.strerror}; hint: {mend}") from error
    return listener


def serve_https(
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
    said = logging.getLogger("uvicorn.error")
    said.setLevel(logging.WARNING)
    said.addFilter(OnceAMinute())
    # uvicorn raises the signal again after it has shut down, for handlers of before: here that must be the end of it.
    before = {number: signal.signal(number, _heard) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _Guarded(config, when_ready, certificate, listener, door).run(sockets=[])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def announce(what: str, listener: socket.socket) -> None:
    """The line on stdout that says that ``what`` accepts work."""
    host, port = listener.getsockname()[:2]
    print(f"ready {what} {host}:{port}", flush=True)


def _heard(_number: int, _frame: FrameType | None) -> None:
    logging.getLogger("tandem.serve").info("stopping")
