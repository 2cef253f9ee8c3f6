"""Serves an ASGI application over HTTP/1.1, with TLS or without: every connection is counted, every wait for the peer ends."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import ssl
import time
from collections.abc import Callable
from types import FrameType
from typing import cast

import h11
import uvicorn
from starlette.types import ASGIApp

from tandem.notify import Notify
from tandem_server.http.certificate import Certificate
from tandem_server.http.connections import Connection, ConnectionLimiter, Stage, ends_of
from tandem_server.http.context import ConnectionGuard
from tandem_server.http.rates import ProbeRates

_LOG = logging.getLogger("tandem.http")
_AT_ONCE = 64
"""So many accepted in one go; then the loop's other work has its turn."""

_BACKLOG = 1024
_PAUSE_S = 1.0
_GOODBYE_S = 5.0
_HEAD_BYTES = 32 * 1024
_WRITE_S = 30.0
"""How long an answer may wait for a peer that does not read it."""

_GRACE = 1.5
"""Of a body whose request was answered already: the application bounds those that it reads."""

_CERTIFICATE_S = 5.0
"""How often the certificate's files are looked at."""


class GuardedProtocol(asyncio.Protocol):
    """Around an HTTP protocol, which it calls for everything. uvicorn's protocols have one bound in time, for a connection that rests after
    an answer, and the first byte afterwards lifts it for ever; here each stage of a connection has its own."""

    def __init__(self, inner: asyncio.Protocol, limiter: ConnectionLimiter, loop: asyncio.AbstractEventLoop) -> None:
        self._inner, self._limiter, self._loop = inner, limiter, loop
        self._connection: Connection | None = None
        self._stage: Stage | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._heard_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The TLS handshake is done."""
        self._transport = cast(asyncio.Transport, transport)
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._connection = self._limiter.find(ends_of(peer, own)) if peer and own else None
        if self._connection is not None:
            self._connection.abort, self._connection.waits_for = self._transport.abort, self._wait_for
        self._wait_for("head")
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._wait_for(None)
        if self._write_timer is not None:
            self._write_timer.cancel()
        if self._connection is not None:
            self._limiter.left(self._connection)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """More has come."""
        self._heard_s = time.monotonic()
        if self._stage == "rest":
            self._wait_for("head")
        try:
            self._inner.data_received(data)
        except h11.LocalProtocolError:
            # What follows an answered request is no HTTP: there is nothing left to say, and uvicorn would try.
            self._transport.abort()

    def eof_received(self) -> bool | None:
        """The peer sends no more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """The peer reads more slowly than it is answered."""
        self._inner.pause_writing()
        if self._write_timer is None:
            self._write_timer = self._loop.call_later(_WRITE_S, self._transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        self._inner.resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _wait_for(self, stage: Stage | None) -> None:
        self._stage = stage
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if stage is None or self._transport.is_closing():
            return
        limits = self._limiter.limits
        idle_s = limits.idle_s if self._authenticated() else limits.head_s
        within_s = {"head": limits.head_s, "body": limits.body_s * _GRACE, "rest": idle_s}[stage]
        self._timer = self._loop.call_later(within_s, self._late, within_s)

    def _authenticated(self) -> bool:
        return self._connection is None or self._connection.probe is not None

    def _late(self, within_s: float) -> None:
        quiet_s = time.monotonic() - self._heard_s
        if self._stage == "body" and self._authenticated() and quiet_s < within_s:
            # A probe on a slow path may take its time, as long as something comes.
            self._timer = self._loop.call_later(within_s - quiet_s, self._late, within_s)
        else:
            self._transport.abort()


class TlsAcceptor:
    """Accepts on one listening socket within the event loop, and does the TLS handshakes: uvicorn counts a connection only after its
    handshake. ``factory`` makes the protocol of each connection. ``context`` None: without TLS."""

    def __init__(
        self,
        listening: socket.socket,
        limiter: ConnectionLimiter,
        context: ssl.SSLContext | None,
        factory: Callable[[], asyncio.Protocol],
    ) -> None:
        self._listening, self._limiter, self._context, self._factory = listening, limiter, context, factory
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._stopped = False
        listening.setblocking(False)
        listening.listen(_BACKLOG)
        self._attend()

    def stop(self) -> None:
        """Accept no more; handshakes under way are given up."""
        self._loop.remove_reader(self._listening.fileno())
        self._stopped = True
        for task in self._handshakes:
            task.cancel()

    def _attend(self) -> None:
        if not self._stopped:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, peer = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    _LOG.warning("accept: %s; again in %g s", error.strerror, _PAUSE_S)
                    self._loop.remove_reader(self._listening.fileno())
                    self._loop.call_later(_PAUSE_S, self._attend)
                    return
                continue  # it was reset before it was accepted
            connection = self._limiter.admit(accepted, peer)
            if connection is not None:
                task = self._loop.create_task(self._shake_hands(connection))
                self._handshakes.add(task)
                task.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, connection: Connection) -> None:
        connection.socket.setblocking(False)
        done = False
        try:
            await self._loop.connect_accepted_socket(
                self._factory,
                connection.socket,
                ssl=self._context,
                ssl_handshake_timeout=None if self._context is None else self._limiter.limits.head_s,
                ssl_shutdown_timeout=None if self._context is None else _GOODBYE_S,
            )
            done = True  # from here on the protocol learns of its end
        except OSError as error:
            _LOG.debug("%s: no TLS: %s", connection.address, error)
        finally:
            if not done:
                self._limiter.left(connection)
                connection.socket.close()


class _Server(uvicorn.Server):
    """Accepts by ``TlsAcceptor``, takes a renewed certificate over, and notifies the service manager."""

    def __init__(
        self,
        config: uvicorn.Config,
        when_ready: Callable[[], None],
        certificate: Certificate | None,
        listening: socket.socket,
        limiter: ConnectionLimiter,
    ) -> None:
        super().__init__(config)
        self._when_ready, self._certificate, self._listening, self._limiter = (
            when_ready,
            certificate,
            listening,
            limiter,
        )
        self._notify = Notify.of_environment()
        self._acceptor: TlsAcceptor | None = None
        self._refresh: asyncio.TimerHandle | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)  # none: uvicorn does not listen
        loop = asyncio.get_running_loop()
        protocol: Callable[..., asyncio.Protocol] = self.config.http_protocol_class

        def guarded() -> GuardedProtocol:
            state = {"server_state": self.server_state, "app_state": self.lifespan.state}
            return GuardedProtocol(protocol(config=self.config, **state, _loop=loop), self._limiter, loop)

        context = None
        if self._certificate is not None:
            loop.add_signal_handler(signal.SIGHUP, self._certificate.refresh)
            self._refresh_certificate(loop, self._certificate)
            context = self._certificate.context
        self._acceptor = TlsAcceptor(self._listening, self._limiter, context, guarded)
        self._when_ready()
        self._notify.ready()

    async def on_tick(self, counter: int) -> bool:
        # Called ten times a second, by the loop that answers probes: when it hangs, the service manager learns nothing.
        self._notify.alive()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._notify.stopping()
        if self._refresh is not None:
            self._refresh.cancel()
        if self._acceptor is not None:
            self._acceptor.stop()
        await super().shutdown(sockets)

    def _refresh_certificate(self, loop: asyncio.AbstractEventLoop, certificate: Certificate) -> None:
        certificate.refresh(only_if_changed=True)
        self._refresh = loop.call_later(_CERTIFICATE_S, self._refresh_certificate, loop, certificate)


def serve(
    app: ASGIApp,
    listener: socket.socket,
    certificate: Certificate | None,
    limiter: ConnectionLimiter,
    rates: ProbeRates,
    when_ready: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress may finish for 10 s. ``when_ready`` is called once. SIGHUP: look at the
    certificate's files now. ``certificate`` None: plain HTTP, for loopback."""
    config = uvicorn.Config(
        ConnectionGuard(app, limiter, rates),
        http="h11",  # it bounds a head, and answers pipelined requests one at a time
        h11_max_incomplete_event_size=_HEAD_BYTES,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=int(limiter.limits.idle_s),
        timeout_graceful_shutdown=10,
        proxy_headers=False,  # a stranger's X-Forwarded-For must not become an address
    )
    config.load()
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # uvicorn raises the signal again after it has shut down, for handlers of before: here that must be the end of it.
    before = {number: signal.signal(number, _stopping) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _Server(config, when_ready, certificate, listener, limiter).run(sockets=[])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stopping(_number: int, _frame: FrameType | None) -> None:
    logging.getLogger("tandem.serve").info("stopping")
