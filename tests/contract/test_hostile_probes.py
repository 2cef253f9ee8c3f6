"""One good token in bad hands: what it sends must stop neither the gateway nor the records of others."""

import asyncio
import gzip
import io
import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.asgi_request import asked, bearer
from support.trace_gateway import TraceGateway
from tandem.export.exporter import Line, send
from tandem.export.gateway import Answer
from tandem_server.cli.configuration import load
from tandem_server.cli.log import FewOfAKind, LineFormatter, line_handler
from tandem_server.cli.main import main
from tandem_server.cli.stores import upload_service
from tandem_server.endpoint.control import Results
from tandem_server.http.rates import DiskShare, Reserve
from tandem_server.ingest.documents import InvalidManifest
from tandem_server.ingest.gateway import Gateway, GatewayLimits
from tandem_server.registry import Registry
from tandem_server.store import PrivateInflux, StoreStartError, find_influxd

NOW = time.time_ns()
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def influx(tmp_path_factory):
    try:
        binary = find_influxd()
    except StoreStartError as error:
        pytest.skip(str(error))
    with PrivateInflux(binary, tmp_path_factory.mktemp("influx"), 0) as database:
        yield database


@pytest.fixture
def server(tmp_path, influx):
    with Registry(tmp_path / "registry.sqlite") as registry, influx.client() as store:
        yield Attacked(tmp_path, registry, store)


class Attacked:
    """The gateway within this process, before a real database whose requests are counted."""

    def __init__(self, folder, registry, store):
        (folder / "server.toml").write_text("")
        self.folder, self.registry, self.store = folder, registry, store
        self.tokens = {name: registry.probes.add(name) for name in ("probe-bad", "probe-good")}
        self.writes, self._write_once = [], store._write_once
        store._write_once = self._counted
        self.open()

    def open(self, reserve_bytes=0, **limits):
        """Begin anew, with bounds of its own."""
        desk = upload_service(load(self.folder / "server.toml"), self.registry)
        reserve = Reserve([self.folder], reserve_bytes)
        self.gateway = Gateway(self.registry, self.store, GatewayLimits(**limits), desk, reserve=reserve)
        self.app = self.gateway.app()

    def _counted(self, lines, path):
        self.writes.append(lines)
        return self._write_once(lines, path)

    async def asked(self, method, path, body, probe="probe-bad", address="127.0.0.1", **headers):
        """Status and JSON of one request to the application itself."""
        own = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        status, _, told = await asked(self.app, method, path, [body], [bearer(self.tokens[probe]), *own], address)
        return status, told

    def records(self, lines, probe="probe-bad"):
        return self.asked("POST", "/v1/records", "\n".join(lines).encode(), probe)


def event(i, boot):
    return f"event,boot={boot},kind=k,path=a monotonic_ns=1i,seq={i + 1}i {NOW + i}"


def test_tags_that_swallow_the_lines_behind_them_never_reach_the_database(server):
    """InfluxDB takes the blank for the end of the tags, and the quote for the beginning of a text that ends with the next one."""
    hostile = [event(i, 'x\\\\ \\\\="') for i in range(2600)]

    async def run():
        attack = [server.records(hostile) for _ in range(4)]
        return await asyncio.gather(*attack, server.records([event(0, "good")], "probe-good"))

    *attacked, good = asyncio.run(run())
    assert good == (200, {"accepted": 1, "rejected": []})
    for status, told in attacked:
        assert (status, told["accepted"], len(told["rejected"])) == (200, 0, len(hostile))
        assert "backslash" in told["rejected"][0]["reason"]
    assert len(server.writes) == 1


def test_tags_that_no_name_needs_are_refused_with_their_reason(server):
    for value in ("a\\b", 'a"b', "a\x1b[31mb", "a\x00b", "a\x9bb", "a\u2028b", "x" * 300):
        status, told = asyncio.run(server.records([event(0, value), event(1, "O\\ 2\\,\\ Große\\ Töne\\=1")]))
        assert (status, told["accepted"], [one["line"] for one in told["rejected"]]) == (200, 1, [0])
        assert told["rejected"][0]["reason"].isprintable()


def conflicting(server, count):
    """Every other line is one that only the database knows to be wrong: its field had another type before."""
    server.store.write([f'card,device=mmcblk0,boot=b,probe=x written_bytes="text" {NOW}'])
    return [
        f"card,boot=b,device=mmcblk0 monotonic_ns=1i,seq={i + 1}i,written_bytes={i}i {NOW + i}"
        if i % 2
        else event(i, "b")
        for i in range(count)
    ]


def test_lines_that_only_the_database_refuses_hold_up_nobody_else(server):
    bad = conflicting(server, 2600)
    server.writes.clear()

    async def run():
        attack = [asyncio.ensure_future(server.records(bad)) for _ in range(4)]
        answers = [await server.records([event(i, "good")], "probe-good") for i in range(20)]
        return answers, await asyncio.gather(*attack)

    answers, attacked = asyncio.run(run())
    assert answers == [(200, {"accepted": 1, "rejected": []})] * 20
    assert {status for status, _ in attacked} <= {413, 503}
    assert len(server.writes) <= 200  # before: 5,199 for each of the four


def test_a_probe_that_halves_gets_its_good_lines_stored_and_its_bad_ones_named(server):
    bad, named = conflicting(server, 200), []

    def ask(method, path, content, _headers):
        status, told = asyncio.run(server.asked(method, path, content, content_encoding="gzip"))
        return Answer(status, told, None)

    accepted = send([Line(i, line) for i, line in enumerate(bad)], ask, lambda seq, reason: named.append((seq, reason)))
    assert accepted == 100
    assert [seq for seq, _ in named] == list(range(1, 200, 2))
    assert all("field type conflict" in reason for _, reason in named)


@pytest.fixture
def gateway(tmp_path):
    made = TraceGateway(tmp_path)
    made.start()
    yield made
    made.end()
    assert "Traceback" not in made.log()


def peak_bytes(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_small_bodies_that_unpack_to_large_documents_cost_little_memory(gateway):
    before = peak_bytes(gateway.process)
    offer = gzip.compress(b'{"format":"tandem-trace/1","chunks":[' + b"[]," * (8 * 2**20 // 3 - 20) + b"[]]}")
    manifest = gzip.compress(b'{"format":"tandem-run/1","paths":[' + b"{}," * (2**20 // 3 - 20) + b"{}]}")
    assert max(len(offer), len(manifest)) < 10_000
    packed = {"Content-Encoding": "gzip"}
    with ThreadPoolExecutor(24) as threads:
        offers = [threads.submit(gateway.ask, "POST", "/v1/traces", offer, packed) for _ in range(8)]
        manifests = [threads.submit(gateway.ask, "PUT", "/v1/runs/run-1", manifest, packed) for _ in range(16)]
    assert {one.result()[0] for one in offers} <= {400, 413, 503}
    assert {one.result()[0] for one in manifests} <= {400, 503}
    assert peak_bytes(gateway.process) - before < 100 << 20  # before: 1.37 GB


def test_what_a_body_unpacks_to_counts_as_held(server):
    """Lines that are passed over: nothing but the text itself is there to be held."""
    server.gateway._bytes.bytes_limit = 1_000_000
    body = gzip.compress(b"\n" * 9_000 + b"#" * 4_000_000)
    for method, path in (("POST", "/v1/records"), ("PUT", "/v1/runs/run-1"), ("POST", "/v1/traces")):
        text = body if path == "/v1/records" else gzip.compress(b'{"a":"' + b"x" * 1_020_000 + b'"}')
        status, told = asyncio.run(server.asked(method, path, text, content_encoding="gzip"))
        assert (path, status, told) == (path, 503, {"error": "too many bytes at once"})
    assert server.gateway._bytes.held == 0


def test_while_one_probes_document_is_read_others_are_answered(server, monkeypatch):
    reading, let = threading.Event(), threading.Event()
    at_once, most = 0, 0

    def slow(*_):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        reading.set()
        assert let.wait(PATIENCE_S)
        at_once -= 1
        raise InvalidManifest("none")

    monkeypatch.setattr("tandem_server.ingest.gateway.read_manifest", slow)

    async def run():
        attack = [asyncio.ensure_future(server.asked("PUT", f"/v1/runs/run-{i}", b"{}")) for i in range(20)]
        await asyncio.to_thread(reading.wait, PATIENCE_S)
        good = await server.records([event(i, "good") for i in range(400)], "probe-good")
        offered = await server.asked("POST", "/v1/traces", b"{}", "probe-good")
        let.set()
        return good[0], offered[0], {status for status, _ in await asyncio.gather(*attack)}

    assert asyncio.run(run()) == (200, 400, {400})
    assert most == 1


def manifest(run, fill=0):
    whole = {
        "format": "tandem-run/1", "id": run, "pair": "p", "pairing": "single", "kind": "mptcp", "paths": ["a"], "probe": "probe-bad",
        "boot": "b", "trigger": "told", "experiment": {}, "parameters": {"fill": "x" * fill}, "seed": None, "started_utc_ns": 1,
        "ended_utc_ns": 2, "started_monotonic_ns": 1, "ended_monotonic_ns": 2, "environment": {}, "modems": {}, "clock": {},
        "records": {}, "result": {"bytes": 5, "duration_s": 1.0, "goodput_bit_per_s": 40.0}, "failure": None, "files": [],
    }  # fmt: skip
    return gzip.compress(json.dumps(whole).encode())


def test_what_small_manifests_unpack_to_fills_no_disk(server):
    server.open(document_bytes_per_day=5_000_000)

    async def run():
        bodies = [(f"run-{i}", manifest(f"run-{i}", 1_000_000)) for i in range(40)]
        assert sum(len(body) for _, body in bodies) < 60_000
        put = [server.asked("PUT", f"/v1/runs/{run}", body, content_encoding="gzip") for run, body in bodies]
        return [status for status, _ in await asyncio.gather(*put)]

    statuses = asyncio.run(run())
    assert sorted(set(statuses)) == [200, 429]
    assert sum(len(json.dumps(one.manifest)) for one in server.registry.runs.all("probe-bad")) <= 6_100_000
    assert asyncio.run(server.records([event(0, "b")]))[0] == 200  # records have bounds of their own


def test_nothing_is_stored_below_the_reserve_of_free_space(server):
    server.open(reserve_bytes=1 << 60)
    for method, path, body in (
        ("POST", "/v1/records", event(0, "b").encode()),
        ("PUT", "/v1/runs/run-1", gzip.decompress(manifest("run-1"))),
    ):
        assert asyncio.run(server.asked(method, path, body)) == (507, {"error": "the server has no room now"})
    assert (server.writes, server.registry.runs.all()) == ([], [])


def test_results_of_sessions_have_a_share_of_the_disk_a_day(tmp_path):
    results = Results(tmp_path / "results", DiskShare(Reserve([tmp_path], 0), 250_000))
    body = b'{"fill":"' + b"x" * 100_000 + b'"}'
    for i in range(3):
        results.put("probe-bad", "run", f"session-{i}", body)
    with pytest.raises(OSError, match="share of a day"):
        results.put("probe-bad", "run", "session-3", body)
    results.put("probe-good", "run", "session-4", body)
    assert len(list(tmp_path.rglob("*.json"))) == 4
    with pytest.raises(OSError, match="are kept free"):
        Results(tmp_path, DiskShare(Reserve([tmp_path], 1 << 60), 1)).put("probe-bad", "run", "s", body)


def test_new_series_are_bounded_and_those_there_are_go_on(server):
    server.open(series_per_hour=1000)
    known = [event(i, "known") for i in range(10)]
    assert asyncio.run(server.records(known))[0] == 200

    async def run(first, last):
        return [
            (await server.records([event(i, f"series\\ {i}") for i in range(at, at + 99)]))[0]
            for at in range(first, last, 99)
        ]

    assert asyncio.run(run(0, 59_400)) == [200] * 10 + [429] * 590
    found = server.store.query('SHOW TAG VALUES FROM "event" WITH KEY = "boot" WHERE "boot" =~ /^series/')
    assert len(found[0].rows) == 990
    assert asyncio.run(run(0, 990)) == [200] * 10
    assert asyncio.run(server.records(known))[0] == 200
    assert asyncio.run(server.records([event(0, "new")], "probe-good"))[0] == 200


def test_whatever_a_stranger_asks_is_counted_and_bounded(server):
    server.open(failures_per_minute=10)
    server.tokens["nobody"] = "none"

    async def run():
        told = {}
        for address, method, path in (
            ("192.0.2.1", "GET", "/v1/health"),
            ("192.0.2.2", "POST", "/v1/enrol"),
            ("192.0.2.3", "GET", "/v1/nothing"),
            ("192.0.2.4", "PUT", "/v1/health"),
        ):
            told[path, method] = [(await server.asked(method, path, b"{}", "nobody", address))[0] for _ in range(12)]
        beside = (await server.asked("GET", "/v1/health", b"", "probe-good", "192.0.2.1"))[0]
        return told, beside, (await server.asked("GET", "/v1/nothing", b"", "probe-good"))[0]

    told, *good = asyncio.run(run())
    assert told["/v1/health", "GET"] == [200] * 10 + [429] * 2
    assert told["/v1/enrol", "POST"] == [400] * 10 + [429] * 2
    assert set(told["/v1/nothing", "GET"] + told["/v1/health", "PUT"]) == {401}  # which the edge counts
    assert good == [200, 404]
    assert server.gateway._meter.take().unauthenticated == 48


def test_no_command_brings_a_probes_escapes_to_a_terminal(server, influx, capsys):
    """Titles, colours, the cursor, and lines that look like others."""
    bad = "\x1b]0;owned\x07\x1b[2J\x9b1mno\nlink\u2028\u202e"
    failed = json.loads(gzip.decompress(manifest("run-1")))
    failed |= {"result": None, "failure": {"reason": bad, "retry": False}}
    failed["files"] = [{"path": f"captures/{bad}", "bytes": 1, "sha256": "0" * 64}]
    assert asyncio.run(server.asked("PUT", "/v1/runs/run-1", json.dumps(failed).encode()))[0] == 200
    line = f'event,boot=b,kind=handover,path=a detail="{bad}",monotonic_ns=1i,seq=1i {NOW}'.replace("\n", " ")
    assert asyncio.run(server.records([line]))[0] == 200
    (server.folder / "server.toml").write_text(
        f'[registry]\nfile = "registry.sqlite"\n[store]\nkind = "running"\nurl = "{influx.url}"\nuser = "tandem"\n'
        f'password_file = "{influx.folder / "tandem.password"}"\n'
    )
    for words in (["ledger"], ["probe", "last", "probe-bad"], ["probe", "list"]):
        main([*words, "--config", str(server.folder / "server.toml")])
        told = capsys.readouterr()
        assert "probe-bad" in told.out, told.err
        assert all(one.isprintable() for one in (told.out + told.err).split("\n")), words
    record = logging.LogRecord("x", logging.WARNING, "", 0, "%s: no", (bad,), None)
    assert LineFormatter("%(message)s").format(record).isprintable()


def test_many_lines_of_one_kind_fill_no_log():
    """As of connections that are none: a line each, before."""
    out, now = io.StringIO(), [0.0]
    handler = line_handler(out)
    handler.filters = [FewOfAKind(now_s=lambda: now[0])]
    said = logging.Logger("tandem.endpoint")
    said.addHandler(handler)
    for i in range(200):
        said.info("%s: %s", f"192.0.2.{i}", "the head is no HTTP")
    said.info("another kind")
    assert len(out.getvalue().splitlines()) == 31
    now[0] = 61.0
    said.info("%s: %s", "192.0.2.1", "again")
    said.info("%s: %s", "192.0.2.1", "again")
    assert "again (170 more" in out.getvalue().splitlines()[-2]
    assert out.getvalue().endswith("again\n")
