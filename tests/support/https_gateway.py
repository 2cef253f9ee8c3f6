"""A real HTTPS gateway for tests, with a CA of its own. It answers what the test scripts; by default it accepts everything."""

import gzip
import json
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from tandem_server.cli.tls import make

TOKEN = "t0ken-of-the-test"  # noqa: S105 good for this gateway only
Reply = tuple[int, dict[str, Any], dict[str, str]]


class TlsServer:
    """``handler`` over HTTPS at ``url``, by a CA of its own, whose certificate is ``ca``, and the token in ``token_file``."""

    def __init__(self, folder: Path, handler: type[BaseHTTPRequestHandler]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (content, _mode) in make("gateway", [ip_address("127.0.0.1")], 1).items():
            (folder / name).write_bytes(content)
        self.ca = folder / "ca.pem"
        self.token_file = folder / "token"
        self.token_file.write_text(TOKEN + "\n")
        self.changed = threading.Condition()
        self.requests: list[Any] = []

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                pass  # a client that went away

        self._server = Server(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def until(self, what: Callable[[], object], timeout_s: float = 60.0) -> None:
        """Wait for a condition; AssertionError when it does not come."""
        end_s = time.monotonic() + timeout_s
        with self.changed:
            while not what():
                assert time.monotonic() < end_s, self.requests[-5:]
                self.changed.wait(0.05)  # not all that is waited for happens here

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Gateway(TlsServer):
    """Remembers every accepted line by its seq, every manifest by its run, and how many connections came."""

    def __init__(self, folder: Path) -> None:
        self.lines: dict[int, str] = {}
        self.times_accepted: dict[int, int] = {}
        self.manifests: dict[str, Any] = {}
        self.connections = 0
        self.queue: Callable[[str, str, bytes], Reply] = lambda _method, _path, _body: (404, {}, {})
        """Answers what is asked of the probe's queue of campaigns."""
        self.answer: Callable[[str, str, list[str]], Reply | None] = lambda _method, _path, _lines: None
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                gateway.connections += 1
                super().setup()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                lines = gzip.decompress(body).decode().split("\n")
                self._reply(gateway.records(self, lines))

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path.startswith("/v1/campaigns"):
                    self._reply(gateway.campaigns(self, "PUT", body))
                else:
                    self._reply(gateway.manifest(self, body))

            def do_GET(self) -> None:
                if self.path == "/v1/health":
                    self._reply((200, {"ok": True}, {}))
                    return
                self._reply(gateway.campaigns(self, "GET", b""))

            def _reply(self, reply: Reply) -> None:
                status, content, headers = reply
                raw = json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(raw)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

        super().__init__(folder, Handler)

    def records(self, handler: BaseHTTPRequestHandler, lines: list[str]) -> Reply:
        return self._answered(handler, "POST", lines, lambda: self._accept(lines))

    def _accept(self, lines: list[str]) -> Reply:
        for line in lines:
            self._keep(line)
        return 200, {"accepted": len(lines), "rejected": []}, {}

    def _keep(self, line: str) -> None:
        seq = int(line.partition(",seq=")[2].partition("i")[0])
        self.lines[seq] = line
        self.times_accepted[seq] = self.times_accepted.get(seq, 0) + 1

    def accept_but(self, bad: Callable[[str], bool]) -> Callable[[str, str, list[str]], Reply | None]:
        """An ``answer`` that takes all lines but the bad ones."""

        def answer(method: str, _path: str, lines: list[str]) -> Reply | None:
            if method != "POST":
                return None
            rejected = [{"line": n, "reason": "bad"} for n, line in enumerate(lines) if bad(line)]
            for line in lines:
                if not bad(line):
                    self._keep(line)
            return 200, {"accepted": len(lines) - len(rejected), "rejected": rejected}, {}

        return answer

    def manifest(self, handler: BaseHTTPRequestHandler, body: bytes) -> Reply:
        run = handler.path.rpartition("/")[2]

        def take() -> Reply:
            self.manifests[run] = json.loads(body)
            return 200, {"ok": True}, {}

        return self._answered(handler, "PUT", [], take)

    def campaigns(self, handler: BaseHTTPRequestHandler, method: str, body: bytes) -> Reply:
        return self._answered(handler, method, [], lambda: self.queue(method, handler.path, body))

    def _answered(
        self, handler: BaseHTTPRequestHandler, method: str, lines: list[str], take: Callable[[], Reply]
    ) -> Reply:
        with self.changed:
            if handler.headers.get("Authorization") != f"Bearer {TOKEN}":
                reply: Reply = (401, {"error": "no good token"}, {})
            else:
                reply = self.answer(method, handler.path, lines) or take()
            self.requests.append((method, handler.path, reply[0]))
            self.changed.notify_all()
            return reply
