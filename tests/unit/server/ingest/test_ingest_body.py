"""Bodies are decoded in bounded memory, manifests checked before the ledger takes them, and no more bytes held than allowed."""

import asyncio
import contextlib
import gzip
import json
import time

import pytest
from fake_database import FakeDatabase
from hypothesis import given
from hypothesis import strategies as st

from support.asgi_request import asked, bearer
from support.hostile_json import any_json
from support.probe_runs import MANIFEST
from tandem_server.cli.configuration import load
from tandem_server.cli.stores import upload_service
from tandem_server.http.body import Unreadable, decode
from tandem_server.ingest.documents import InvalidManifest, read_manifest
from tandem_server.ingest.gateway import Gateway, GatewayLimits

LIMIT = 100_000


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=1000), st.integers(0, 9))
def test_what_was_packed_is_unpacked(text, level):
    raw = text.encode()
    assert decode(raw, None, LIMIT) == text
    assert decode(gzip.compress(raw, level), "gzip", LIMIT) == text
    half = len(raw) // 2
    assert decode(gzip.compress(raw[:half]) + gzip.compress(raw[half:]), "gzip", LIMIT) == text


@given(st.binary(max_size=200), st.sampled_from([None, "identity", "gzip", "br", "deflate"]))
def test_any_body_is_text_or_unreadable(body, encoding):
    with contextlib.suppress(Unreadable):
        assert isinstance(decode(body, encoding, LIMIT), str)


@given(st.data())
def test_a_damaged_body_never_passes_as_whole(data):
    packed = gzip.compress(b"radio rsrp_dbm=-90 1\n" * 20)
    cut = data.draw(st.integers(1, len(packed) - 1))
    with pytest.raises(Unreadable):
        decode(packed[:cut], "gzip", LIMIT)


def test_a_manifest_is_read_and_a_number_that_nobody_else_reads_is_refused():
    assert read_manifest(json.dumps(MANIFEST), "run-1", "probe-1") == MANIFEST
    usage = {"paths": {"a": {"received": 1, "sent": 2}}, "shared_by_pair": False}
    told = {**MANIFEST, "kind": "any", "result": {"answers": 7}, "usage": usage}
    assert read_manifest(json.dumps(told), "run-1", "probe-1") == told
    text = json.dumps({**MANIFEST, "modems": {"a": {"level": 5.5}}})
    assert read_manifest(text, "run-1", "probe-1")["modems"] == {"a": {"level": 5.5}}
    for number in ("1e999", "-1e999", "NaN", "Infinity"):
        with pytest.raises(InvalidManifest, match=f"not JSON: {number} "):
            read_manifest(text.replace("5.5", number), "run-1", "probe-1")


NO_MANIFESTS = [
    ({"format": "tandem-run/2"}, "format"),
    ({"id": "run-2"}, "the address says"),
    ({"probe": "probe-2"}, "the token is"),
    ({"seed": True}, "seed is true"),
    ({"paths": "a"}, "paths is"),
    ({"records": {"subflow": -1}}, "not counts"),
    ({"result": {"bytes": 5}}, "result.duration_s"),
    ({"result": None}, "neither result nor failure"),
    ({"failure": {"reason": "x", "retry": "no"}}, "failure.retry"),
    ({"kind": "sctp"}, "none of the schema's"),
    ({"usage": 5}, "usage is 5"),
    ({"conditions": None}, "conditions is null"),
]


def test_what_is_no_manifest_is_refused_by_name():
    for change, reason in NO_MANIFESTS:
        with pytest.raises(InvalidManifest, match=reason):
            read_manifest(json.dumps({**MANIFEST, **change}), "run-1", "probe-1")
        for key in change.keys() & MANIFEST.keys():
            without = {k: v for k, v in MANIFEST.items() if k != key}
            with pytest.raises(InvalidManifest):
                read_manifest(json.dumps(without), "run-1", "probe-1")


JSON = any_json()


@given(st.dictionaries(st.sampled_from(list(MANIFEST)), JSON, max_size=4), st.text(max_size=20))
def test_any_text_is_a_manifest_or_refused(change, text):
    for candidate in (json.dumps({**MANIFEST, **change}), text, "[" * 100_000):
        with contextlib.suppress(InvalidManifest):
            assert read_manifest(candidate, "run-1", "probe-1")["id"] == "run-1"


# --- while the database is slow: what is more than may be held is told to come later, and loses nothing by it


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
