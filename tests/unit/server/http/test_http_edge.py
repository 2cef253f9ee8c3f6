"""Every wait for a peer of the HTTP edge ends: before a head, within one, after an answer, and with a body that nobody reads."""

import asyncio
import contextlib
import socket
import time

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from tandem_server.http import server as module
from tandem_server.http.connections import ConnectionLimiter, ConnectionLimits
from tandem_server.http.context import ConnectionGuard, context_of
from tandem_server.http.rates import ProbeRates, RateShare
from tandem_server.http.server import GuardedProtocol, TlsAcceptor

HEAD_S, BODY_S, IDLE_S = 0.3, 0.5, 1.5
LATE_S = 60.0
"""A busy machine is late; what never ends is later than that."""


async def app(scope, receive, send):
    """Answers at once, without reading a body; who requests /known is known from then on, /large is more than a socket takes."""
    request = Request(scope, receive)
    if request.url.path == "/known":
        assert context_of(request).authenticate("probe-1") == 0
    size = 64 << 20 if request.url.path == "/large" else 2
    await PlainTextResponse("x" * size)(scope, receive, send)


@contextlib.asynccontextmanager
async def edge(**limits):
    """The limiter, and how a connection is opened."""
    limiter = ConnectionLimiter(ConnectionLimits(**{"head_s": HEAD_S, "body_s": BODY_S, "idle_s": IDLE_S, **limits}))
    guard = ConnectionGuard(app, limiter, ProbeRates(RateShare(10**6, 10**6, 10**9)))
    config = uvicorn.Config(guard, http="h11", ws="none", lifespan="off", log_config=None, timeout_keep_alive=60)
    config.load()
    state, loop = uvicorn.Server(config).server_state, asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", 0))

    def protocol():
        inner = config.http_protocol_class(config=config, server_state=state, app_state={}, _loop=loop)
        return GuardedProtocol(inner, limiter, loop)

    acceptor = TlsAcceptor(listening, limiter, None, protocol)
    try:
        yield limiter, lambda: asyncio.open_connection(*listening.getsockname())
    finally:
        acceptor.stop()
        listening.close()


async def ended_after(reader):
    """Seconds until the server ends the connection, and what it still said."""
    began_s = time.monotonic()
    try:
        answer = await asyncio.wait_for(reader.read(), LATE_S)
    except ConnectionError:
        answer = b""
    return time.monotonic() - began_s, answer


async def left(writer):
    writer.transport.abort()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


RESTING = {
    b"": HEAD_S,
    b"GET / HTTP/1.1\r\nHost: x\r\nX: ": HEAD_S,
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n": HEAD_S,
    b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n": IDLE_S,
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc": BODY_S,
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n": BODY_S,
}
"""What is said before a rest, and the least seconds for which it may last."""


def test_a_connection_that_rests_ends_and_not_before_its_time():
    async def run():
        async with edge() as (limiter, connect):

            async def rests(first):
                reader, writer = await connect()
                writer.write(first)
                rested_s, _ = await ended_after(reader)
                await left(writer)
                return first, rested_s

            rested = await asyncio.gather(*map(rests, RESTING))
            while limiter.authenticated + limiter.unauthenticated:
                await asyncio.sleep(0.01)
            return [first for first, rested_s in rested if rested_s < RESTING[first] * 0.9]

    assert asyncio.run(asyncio.wait_for(run(), 3 * LATE_S)) == []


def test_who_does_not_read_an_answer_is_cut(monkeypatch):
    monkeypatch.setattr(module, "_WRITE_S", 0.3)

    async def run():
        async with edge() as (limiter, connect):
            _, writer = await connect()
            writer.transport.pause_reading()
            writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            while not limiter.unauthenticated:
                await asyncio.sleep(0.01)
            while limiter.unauthenticated:
                await asyncio.sleep(0.01)
            await left(writer)

    asyncio.run(asyncio.wait_for(run(), 3 * LATE_S))


def test_the_newest_is_admitted_and_a_good_token_keeps_its_place():
    async def run():
        async with edge(unauthenticated=4, unauthenticated_per_address=4, idle_s=LATE_S) as (limiter, connect):
            known, writer = await connect()
            writer.write(b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200 OK" in await known.readuntil(b"xx")
            crowd = [await connect() for _ in range(8)]
            reader, newest = await connect()
            newest.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert b"200 OK" in (await ended_after(reader))[1]
            while limiter.unauthenticated:  # until the time for a head is over, which is not that of known ones
                await asyncio.sleep(0.01)
            assert limiter.authenticated == 1
            writer.write(b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200 OK" in await known.readuntil(b"xx")
            for one in (writer, newest, *(each for _, each in crowd)):
                await left(one)

    asyncio.run(asyncio.wait_for(run(), 3 * LATE_S))
