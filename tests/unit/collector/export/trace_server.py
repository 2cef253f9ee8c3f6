"""A strict server of traces for tests, by docs/reference/probe-api.md. Tests make it misbehave on the way; it never takes what is wrong."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from support.https_gateway import TOKEN, TlsServer
from tandem.schema.trace import Offer, Receipt, read_offer

Reply = tuple[int, dict[str, Any], dict[str, str]]


class BreakOff(Exception):  # noqa: N818  the test's wish
    """The connection ends here, without an answer."""


class TraceServer(TlsServer):
    """``received``: whole files by name. ``requests``: method and status of each. ``on_bytes`` may change what comes (a corruption on
    the way) or raise BreakOff; ``reply`` may answer instead."""

    def __init__(self, folder: Path, probe: str = "probe-1") -> None:
        self.probe = probe
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
