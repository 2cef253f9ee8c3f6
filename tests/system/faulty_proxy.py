"""A TLS proxy before the gateway that makes the faults of a network and of a server that falls over in the middle.

Some requests fail: before the gateway has seen them or after it has stored them (500, a connection that is closed, an answer cut off),
or they are delivered twice.
"""

from __future__ import annotations

import gzip
import http.client
import re
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle

FAULTS = ("500 before", "closed before", "500 after", "closed after", "truncated after", "twice")
_SEQ = re.compile(rb"[ ,]seq=([0-9]+)i")


class FaultyProxy:
    """Listens on ``port`` of loopback with ``certificate`` (and key) in PEM files, and passes on to ``behind``.

    ``away``: while true no connection comes about. Of ``every`` requests one meets a fault, the kinds in turn. ``batches``: the numbers
    of each batch whose answer reached the probe whole, in the order of lines, before which ``then`` was called; ``delivered``: how often
    the gateway had each number.
    """

    def __init__(
        self, certificate: tuple[str, str], behind: tuple[str, int], ca: str, every: int, then: Callable[[], object]
    ) -> None:
        self.away = False
        self.batches: list[list[int]] = []
        self.delivered: Counter[int] = Counter()
        self.faults: Counter[str] = Counter()
        self.requests = 0
        self._every, self._then, self._kinds = every, then, cycle(FAULTS)
        to_gateway = ssl.create_default_context(cafile=ca)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                proxy.pass_on(self)

            def setup(self) -> None:
                super().setup()
                self.onwards = http.client.HTTPSConnection(*behind, context=to_gateway, timeout=30)

            def finish(self) -> None:
                self.onwards.close()
                super().finish()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        class Listener(ThreadingHTTPServer):
            daemon_threads = True

            def verify_request(self, *_: object) -> bool:
                return not proxy.away

            def handle_error(self, *_: object) -> None:
                """A probe that went away in the middle is what this is about."""

        self._listener = Listener(("127.0.0.1", 0), Handler)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*certificate)
        self._listener.socket = tls.wrap_socket(self._listener.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._listener.server_address[1]
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.05,))

    def __enter__(self) -> FaultyProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()

    def pass_on(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        self.requests += 1
        fault = next(self._kinds) if self.requests % self._every == 0 else ""
        if fault:
            self.faults[fault] += 1
        if fault == "500 before":
            return _answer(request, 500, b"{}")
        if fault == "closed before" or self.away:
            request.close_connection = True
            return None
        numbers = [int(n) for n in _SEQ.findall(gzip.decompress(body))]
        for _ in range(2 if fault == "twice" else 1):
            status, told = _forward(request, body)
            self.delivered.update(numbers)
        if fault == "500 after":
            return _answer(request, 500, b"{}")
        if fault == "closed after":
            request.close_connection = True
            return None
        if fault == "truncated after":
            return _answer(request, status, told, len(told) // 2)
        if status == 200:
            self.batches.append(numbers)
            self._then()
        return _answer(request, status, told)


def _forward(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
    headers = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "content-length")}
    request.onwards.request(request.command, request.path, body, headers)
    response = request.onwards.getresponse()
    return response.status, response.read()


def _answer(request: BaseHTTPRequestHandler, status: int, told: bytes, cut: int | None = None) -> None:
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(told)))
    request.end_headers()
    request.wfile.write(told[:cut])
    request.close_connection = cut is not None
