"""While the database is slow the gateway holds a bounded number of bytes: what is more is told to come later, and loses nothing by it."""

import asyncio
import time

import pytest
from fake_database import FakeDatabase

from support.asgi_request import asked, bearer
from tandem_server.cli.configuration import load
from tandem_server.cli.stores import upload_service
from tandem_server.ingest.gateway import Gateway, GatewayLimits


@pytest.fixture
def traces(tmp_path, registry):
    (tmp_path / "server.toml").write_text("")
    return upload_service(load(tmp_path / "server.toml"), registry)


def lines(boot, count):
    now = time.time_ns()
    return [f"health,boot={boot},probe=probe-1 monotonic_ns=1i,seq={i + 1}i {now + i}" for i in range(count)]


def post(app, token, chunks, headers=()):
    return asked(app, "POST", "/v1/records", chunks, [bearer(token), *headers])


def test_bytes_in_flight_are_bounded_and_nothing_told_200_is_missing(registry, traces):
    token, database = registry.probes.add("probe-1"), FakeDatabase()
    database.let.clear()
    gateway = Gateway(registry, database, GatewayLimits(bytes_in_flight=100_000), traces)
    app = gateway.app()
    batches = [lines(f"b{i}", 20) for i in range(200)]
    most = 0

    async def run():
        nonlocal most
        senders = [asyncio.ensure_future(post(app, token, ["\n".join(batch).encode()])) for batch in batches]
        while not any(one.done() for one in senders):
            await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
            most = max(most, gateway._bytes.held)
        early = [one.result() for one in senders if one.done()]
        database.let.set()
        return early, await asyncio.gather(*senders)

    early, answers = asyncio.run(run())
    assert 0 < most <= 100_000
    assert gateway._bytes.held == 0
    assert {status for status, _, _ in early} == {503}
    assert len({int(headers[b"retry-after"]) for _, headers, _ in early}) > 1  # they do not come back as one
    taken = [line for batch, answer in zip(batches, answers, strict=True) if answer[0] == 200 for line in batch]
    assert taken
    assert sorted(database.lines) == sorted(taken)


def test_a_length_that_is_only_claimed_holds_nothing(registry, traces):
    token, database = registry.probes.add("probe-1"), FakeDatabase()
    gateway = Gateway(registry, database, GatewayLimits(bytes_in_flight=100_000), traces)
    app = gateway.app()

    async def run():
        rest = asyncio.Event()

        async def later():
            await rest.wait()
            return b""

        claims = [(b"content-length", b"8000000")]
        slow = [asyncio.ensure_future(post(app, token, [b"#" * 100, later()], claims)) for _ in range(50)]
        deadline_s = time.monotonic() + 60
        while (held := gateway._bytes.held) < 50 * 100:
            assert time.monotonic() < deadline_s, held
            await asyncio.sleep(0.001)
        good = await post(app, token, ["\n".join(lines("b", 20)).encode()])
        rest.set()
        await asyncio.gather(*slow)
        return held, good

    held, good = asyncio.run(run())
    assert (held, good[0]) == (50 * 100, 200)
