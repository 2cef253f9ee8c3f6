"""Uploads of traces, against a strict server by docs/reference/probe-api.md that misbehaves on the way."""

import gzip
import hashlib
import json
import random
import threading
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from support.https_gateway import TOKEN, TlsServer
from support.recorded_files import record
from tandem.export import AnyPath, GatewayAddress, Permit, TraceQueue, TraceUploader
from tandem.schema.trace import CHUNK_BYTES, Encoding, Offer, Receipt, read_offer

Reply = tuple[int, dict[str, Any], dict[str, str]]


class BreakOff(Exception):  # noqa: N818  the test's wish
    """The connection ends here, without an answer."""


class TraceServer(TlsServer):
    """``received``: whole files by name. ``requests``: method and status of each. ``on_bytes`` may change what comes (a corruption on
    the way) or raise BreakOff; ``reply`` may answer instead. ``probe``: whose receipts it gives."""

    def __init__(self, folder: Path) -> None:
        self.probe = "probe-1"
        self.received: dict[str, bytes] = {}
        self.offers: dict[str, Offer] = {}
        self.streams: dict[str, bytearray] = {}
        self.offsets: list[int] = []
        self.body_bytes = 0
        self.on_bytes: Callable[[str, int, bytes], bytes] = lambda _sha, _offset, piece: piece
        self.reply: Callable[[str, str], Reply | None] = lambda _method, _path: None
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
                pass

            def _do(self) -> None:
                try:
                    server.answer(self)
                except (BreakOff, OSError):
                    self.close_connection = True

            do_POST = do_PATCH = do_GET = _do  # noqa: N815  the base class's names

        super().__init__(folder, Handler)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        method, left = handler.command, int(handler.headers.get("Content-Length") or 0)
        reply = self.reply(method, handler.path)
        if handler.headers.get("Authorization") != f"Bearer {TOKEN}":
            reply = (401, {"error": "no good token"}, {})
        if reply is not None:
            handler.rfile.read(left)
        elif method == "POST":
            body = handler.rfile.read(left)
            with self.changed:
                self.body_bytes += left
            reply = self._offered(gzip.decompress(body))
        elif method == "PATCH":
            reply = self._more(handler, left)
        else:
            reply = self._state(handler.path.rpartition("/")[2])
        status, content, headers = reply
        raw = json.dumps(content).encode()
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(raw))}.items():
            handler.send_header(name, value)
        if status == 422:  # what is left of the body is not read
            handler.send_header("Connection", "close")
            handler.close_connection = True
        handler.end_headers()
        handler.wfile.write(raw)
        with self.changed:
            self.requests.append((method, status))
            self.changed.notify_all()

    def _offered(self, body: bytes) -> Reply:
        offer = read_offer(json.loads(body))
        there = self.received.get(offer.name)
        if there is not None and hashlib.sha256(there).hexdigest() != offer.sha256:
            return 409, {"error": "another content was received under this name"}, {}
        before = self.offers.get(offer.sha256)
        if before is None or before.chunks != offer.chunks:
            self.streams[offer.sha256] = bytearray()
        self.offers[offer.sha256] = offer
        if offer.name not in self.received and offer.stream_bytes == 0:
            self.received[offer.name] = b""
        return self._state(offer.sha256)

    def _state(self, sha256: str) -> Reply:
        offer = self.offers.get(sha256)
        if offer is None:
            return 404, {"error": "no such offer"}, {}
        if offer.name in self.received:
            receipt = Receipt(self.probe, offer.name, offer.run, offer.bytes, offer.sha256, 1_790_000_000 * 10**9)
            return 200, {"state": "received", "receipt": receipt.as_json()}, {}
        return 200, {"state": "receiving", "offset": len(self.streams[sha256])}, {}

    def _more(self, handler: BaseHTTPRequestHandler, left: int) -> Reply:
        sha256, offset = handler.path.rpartition("/")[2], int(handler.headers["Upload-Offset"])
        offer = self.offers.get(sha256)
        if offer is None:
            handler.rfile.read(left)
            return 404, {"error": "no such offer"}, {}
        stream = self.streams[sha256]
        self.offsets.append(offset)
        if offset != len(stream):
            handler.rfile.read(left)
            return 409, {"state": "receiving", "offset": len(stream)}, {}
        while left > 0 and (piece := handler.rfile.read(min(left, 8192))):
            left -= len(piece)
            with self.changed:
                self.body_bytes += len(piece)
                self.changed.notify_all()
            before = len(stream)
            stream += self.on_bytes(sha256, before, piece)
            wrong = self._wrong(offer, stream, before)
            if wrong is not None:
                del stream[wrong:]
                return 422, {"state": "receiving", "offset": wrong, "error": "a chunk is not what was offered"}, {}
        if len(stream) == offer.stream_bytes:
            whole = bytes(stream) if offer.encoding == "identity" else _inflated(bytes(stream))
            assert hashlib.sha256(whole).hexdigest() == offer.sha256
            self.received[offer.name] = whole
        return self._state(sha256)

    @staticmethod
    def _wrong(offer: Offer, stream: bytearray, before: int) -> int | None:
        """Where the first chunk begins that became whole after ``before`` bytes, and is wrong."""
        begin = 0
        for chunk in offer.chunks:
            if len(stream) < begin + chunk.bytes:
                return None
            end = begin + chunk.bytes
            if end > before and hashlib.sha256(stream[begin:end]).hexdigest() != chunk.sha256:
                return begin
            begin = end
        return None


def _inflated(stream: bytes) -> bytes:
    """Of several gzip members, none cut short."""
    whole = b""
    while stream:
        member = zlib.decompressobj(31)
        whole += member.decompress(stream)
        assert member.eof
        stream = member.unused_data
    return whole


# --- the uploader of traces against a real HTTPS server


GO = Permit(("w",), "over w", 0.0, {})
NO = Permit((), "waits: for the test", 0.05, {})


class Policy:
    def __init__(self) -> None:
        self.now = GO
        self.left: int | None = None
        self.reserved: list[int] = []
        self.used: list[int] = []

    def permit(self) -> Permit:
        if self.left is None:
            return self.now
        left = self.left - sum(self.used)
        return Permit(("w",), "", 0.0, {"w": left}) if left >= 256 * 1024 else NO

    def held(self) -> bool:
        return False

    def reserve(self, path: str, count: int) -> None:
        assert path == "w"
        self.reserved.append(count)

    def settle(self, path: str, used: int) -> None:
        assert path == "w"
        self.used.append(used)


class Probe:
    """A probe's folder and its uploader. ``events``: kind, detail, path."""

    def __init__(self, folder: Path, server: TraceServer, encoding: Encoding = "identity") -> None:
        self.folder, self.server, self.encoding = folder, server, encoding
        self.policy = Policy()
        self.events: list[tuple[str, str, str | None]] = []
        self.happened = threading.Condition()
        folder.mkdir()
        self.begin()

    def begin(self) -> None:
        self.queue = TraceQueue(self.folder)
        address = GatewayAddress.of(self.server.url, self.server.ca, self.server.token_file)
        self.gateway = AnyPath(address, {"w": None}, random.Random(1))
        self.uploader = TraceUploader(self.queue, self.gateway, self.policy, self._tell, "probe-1", self.encoding)

    def _tell(self, kind: str, detail: str, path: str | None) -> None:
        with self.happened:
            self.events.append((kind, detail, path))
            self.happened.notify_all()

    def capture(self, name: str, content: bytes, **promised: bytes) -> None:
        record(self.folder, {f"captures/{name}": content}, **promised)

    def send(self, name: str, content: bytes, **promised: bytes) -> None:
        """Until its receipt is there."""
        self.capture(name, content, **promised)
        self.uploader.start()
        self.until("trace_received")

    def until(self, kind: str, count: int = 1) -> None:
        def there() -> bool:
            return sum(event[0] == kind for event in self.events) >= count

        with self.happened:
            assert self.happened.wait_for(there, 60), (self.events, self.uploader.trouble, self.server.requests[-5:])


@pytest.fixture
def server(tmp_path, request):
    request.getfixturevalue("patience")
    made = TraceServer(tmp_path / "server")
    yield made
    made.close()


@pytest.fixture
def probe(tmp_path, server):
    made = Probe(tmp_path / "probe", server)
    yield made
    made.uploader.stop()


def noise(count: int) -> bytes:
    return random.Random(count).randbytes(count)


def test_files_go_up_deflated_and_their_receipts_are_kept_also_of_an_empty_one(tmp_path, server):
    probe = Probe(tmp_path / "probe", server, "gzip")
    contents = {"captures/a.pcap": b"the same again " * 100_000, "captures/empty.pcap": b""}
    record(probe.folder, contents)
    probe.uploader.start()
    probe.until("trace_received", 2)
    probe.uploader.stop()
    assert server.received == contents
    assert server.body_bytes < len(contents["captures/a.pcap"]) / 20
    for name, content in contents.items():
        receipt = probe.queue.receipts.of(name)
        assert (receipt.bytes, receipt.run) == (len(content), "run-1")
        assert (probe.folder / name).exists(), "deleting is not the uploader's"
    assert probe.queue.counts()["waiting"] == 0
    assert {kept.name for kept in probe.queue.kept()} == contents.keys()


def test_a_connection_that_breaks_is_gone_on_from_where_it_ended(probe, server):
    places = (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 4711)
    contents = {f"captures/{at}.pcap": noise(3 * CHUNK_BYTES - number) for number, at in enumerate(places)}
    broken: list[int] = []

    def breaks(sha: str, offset: int, piece: bytes) -> bytes:
        at = int(Path(server.offers[sha].name).stem)
        if offset + len(piece) > at and at not in broken:
            broken.append(at)
            server.streams[sha] += piece[: at - offset]
            raise BreakOff
        return piece

    server.on_bytes = breaks
    for name, content in contents.items():
        probe.capture(Path(name).name, content)
    probe.uploader.start()
    probe.until("trace_received", len(places))
    assert server.received == contents
    assert set(places) <= set(server.offsets)
    assert sorted(broken) == sorted(places)
    assert sum(method == "POST" for method, _ in server.requests) == len(places), "an offer is made once"


def test_a_chunk_that_is_always_corrupted_is_not_sent_for_ever(probe, server):
    server.on_bytes = lambda _sha, _offset, piece: bytes([piece[0] ^ 1]) + piece[1:]
    probe.capture("a.pcap", noise(CHUNK_BYTES))
    probe.uploader.start()
    server.until(lambda: sum(status == 422 for _, status in server.requests) >= 5)
    server.until(lambda: probe.uploader.trouble is not None)
    assert "5 times" in str(probe.uploader.trouble)


@pytest.mark.parametrize(("what", "status"), [("bytes", 409), ("offer", 404)])
def test_what_a_server_forgot_it_gets_again(probe, server, what, status):
    forgotten: list[str] = []

    def forgets(method: str, path: str) -> None:
        if method == "PATCH" and server.offsets and not forgotten:
            sha = path.rpartition("/")[2]
            forgotten.append(sha)
            if what == "bytes":
                del server.streams[sha][1000:]
            else:
                del server.offers[sha]

    server.reply = forgets
    content = noise(8 * CHUNK_BYTES)
    probe.send("a.pcap", content)
    assert server.received["captures/a.pcap"] == content
    assert ("PATCH", status) in server.requests
    assert (1000 in server.offsets) == (what == "bytes")
    assert sum(method == "POST" for method, _ in server.requests) == (1 if what == "bytes" else 2)


def test_a_server_that_cannot_now_gets_it_later(probe, server):
    probe.uploader.start()
    for count, status in enumerate((401, 429, 500, 503, 507), 1):
        server.requests.clear()
        server.reply = lambda _method, _path, status=status: (status, {"error": "not now"}, {"Retry-After": "3000"})
        probe.capture(f"{status}.pcap", noise(1000 + status))
        probe.queue.scan()
        probe.uploader.wake()
        server.until(lambda status=status: f"HTTP {status}" in str(probe.uploader.trouble) and server.requests)
        server.reply = lambda _method, _path: None
        assert probe.queue.next() is not None
        probe.uploader.wake()
        probe.until("trace_received", count)


def test_what_the_server_will_never_take_stays_and_does_not_hold_up_the_rest(probe, server):
    server.received["captures/a.pcap"] = b"another content"
    probe.capture("a.pcap", noise(1000))
    probe.capture("b.pcap", noise(2000))
    probe.uploader.start()
    probe.until("trace_received")
    assert [kind for kind, _, _ in probe.events] == ["trace_refused", "trace_received"]
    states = {row["name"]: row["state"] for row in probe.queue.rows()}
    assert states == {"captures/a.pcap": "refused", "captures/b.pcap": "received"}
    assert [kept.name for kept in probe.queue.kept()] == ["captures/b.pcap"]
    assert probe.queue.ask_for(["captures/a.pcap"]) == []
    assert probe.queue.counts()["waiting"] == 1, "a person may have it tried again"


def test_a_file_damaged_on_the_card_goes_up_beside_the_promised_name_and_is_never_deleted(probe, server):
    promised = noise(5000)
    content = promised[:100] + b"\0" * 900 + promised[1000:]
    probe.send("a.pcap", content, a=promised)
    assert server.received == {"damaged/captures/a.pcap": content}
    assert [kind for kind, _, _ in probe.events] == ["trace_damaged", "trace_received"]
    assert probe.queue.kept() == []
    probe.uploader.stop()
    probe.begin()
    probe.queue.scan()
    (row,) = [row for row in probe.queue.rows() if row["name"] == "captures/a.pcap"]
    assert row["state"] == "damaged"
    assert probe.queue.next() is None, "known after a restart, and not sent again"


def test_a_file_that_is_gone_is_told_once(probe, server):
    probe.capture("a.pcap", b"x")
    (probe.folder / "captures/a.pcap").unlink()
    probe.uploader.start()
    probe.until("trace_missing")
    assert server.requests == []


def test_a_receipt_for_something_else_is_none(probe, server):
    server.probe = "probe-2"
    probe.capture("a.pcap", noise(1000))
    probe.uploader.start()
    server.until(lambda: "receipt" in str(probe.uploader.trouble))
    assert probe.queue.receipts.of("captures/a.pcap") is None
    assert probe.queue.kept() == []


def test_its_thread_ends_when_nothing_may_go_and_a_tick_begins_it_again(probe, server):
    probe.policy.now = NO
    probe.capture("a.pcap", noise(1000))
    probe.uploader.start()
    server.until(lambda: all(thread.name != "traces" for thread in threading.enumerate()))
    probe.uploader.tick()
    assert server.requests == []
    probe.policy.now = GO
    server.until(lambda: probe.uploader.tick() or bool(server.received))
    probe.until("trace_received")


def test_over_a_metered_path_no_more_than_it_may_cost(probe, server):
    probe.policy.left = 2_000_000
    probe.capture("a.pcap", noise(12 * CHUNK_BYTES))
    probe.uploader.start()
    server.until(lambda: probe.policy.permit() is NO and probe.uploader.now is None)
    assert 1_000_000 < sum(probe.policy.used) <= 2_000_000
    assert len(probe.policy.reserved) == len(probe.policy.used)
    assert all(used <= reserved for used, reserved in zip(probe.policy.used, probe.policy.reserved, strict=True))
    assert sum(probe.policy.used) >= server.body_bytes
    assert server.received == {}
    probe.policy.left = 10_000_000
    probe.uploader.wake()
    probe.until("trace_received")


def test_a_stream_damaged_on_the_card_is_made_anew(tmp_path, server):
    probe = Probe(tmp_path / "probe", server, "gzip")
    content = noise(2 * CHUNK_BYTES)
    probe.capture("a.pcap", content)
    probe.queue.scan()
    probe.uploader._streams.of(probe.queue.next())
    (stream,) = (probe.folder / "traces/offers").glob("*.stream")
    whole = stream.read_bytes()
    stream.write_bytes(whole[:1000] + b"\0" * 1000 + whole[2000:])
    probe.uploader.start()
    server.until(lambda: "5 times" in str(probe.uploader.trouble))
    probe.uploader.wake()
    probe.until("trace_received")
    probe.uploader.stop()
    assert server.received == {"captures/a.pcap": content}
    assert list((probe.folder / "traces/offers").iterdir()) == []


def test_a_capture_without_a_manifest_is_received_as_it_is(probe):
    (probe.folder / "captures").mkdir()
    (probe.folder / "captures/run-0123456789ab-a.pcap").write_bytes(b"left behind")
    probe.uploader.start()
    probe.until("trace_received")
    receipt = probe.queue.receipts.of("captures/run-0123456789ab-a.pcap")
    assert receipt.run == "run-0123456789ab"
    assert [kept.name for kept in probe.queue.kept()] == ["captures/run-0123456789ab-a.pcap"]
