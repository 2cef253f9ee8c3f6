"""A small endpoint for tests: sessions without TLS, whoami, downloads and an upload sink, all of which can be made to misbehave."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

IPPROTO_MPTCP = 262
_GRACE_S = 30.0
"""A timed download goes on so long after its time: the client ends it by its own clock. Ending both at one moment, whichever of them a
busy machine lets run first would decide."""


@dataclass
class Behaviour:
    """``rate`` bytes/s, 0 for unlimited; ``after`` that many bytes do ``then``: "reset", "close", "stall" or nothing. ``sender``: the
    answer to a session's end. ``further_addresses``: in the answer to its beginning, whatever it is.

    ``upload``: ok, deaf (never reads), reset, close, short (counts too few), refuse, early (answers at once), endless (a head without an
    end), nonsense (a body that is no JSON), silent (never answers), the first three ``after`` so many bytes."""

    rate: float = 0.0
    after: int | None = None
    then: str = ""
    upload: str = "ok"
    status: int = 200
    session_status: int = 201
    further_addresses: object = None
    sender: dict[str, object] = field(default_factory=lambda: {"bytes_sent": 0, "connections": []})


class Endpoint:
    """Listens at once; ``protocol`` of the measurement port is MPTCP unless told otherwise; ``host`` "::" takes both families. ``calls``:
    method and target of each request; ``opened``: what each session was asked for; ``peers``: who measured."""

    def __init__(self, behaviour: Behaviour, protocol: int = IPPROTO_MPTCP, host: str = "") -> None:
        self.behaviour = behaviour
        self.calls: list[tuple[str, str]] = []
        self.opened: list[dict[str, object]] = []
        self.peers: list[str] = []
        self._open: set[str] = set()
        self._closing = threading.Event()
        self.control = self._listen(0, host)
        self.measurement = self._listen(protocol, host)
        self.control_port = self.control.getsockname()[1]
        self.measurement_port = self.measurement.getsockname()[1]
        for listener in (self.control, self.measurement):
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    @staticmethod
    def _listen(protocol: int, host: str) -> socket.socket:
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, 0))
        made.listen()
        return made

    def close(self) -> None:
        """Stop listening; running answers end at their next piece."""
        self._closing.set()
        for listener in (self.control, self.measurement):
            with contextlib.suppress(OSError):  # not connected: shutdown still ends a waiting accept
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while not self._closing.is_set():
            try:
                connection, peer = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection, peer), daemon=True).start()

    def _serve(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        with connection, contextlib.suppress(OSError):  # clients of these tests come and go
            self._answer(connection, peer)

    def _answer(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        raw = b""
        while b"\r\n\r\n" not in raw:
            piece = connection.recv(65536)
            if not piece:
                return
            raw += piece
        head, _, body = raw.partition(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        found = re.search(rb"(?i)content-length: (\d+)", head)
        length = None if found is None else int(found[1])
        self.calls.append((method, target))
        if target.startswith("/v1/sessions"):
            while length is not None and len(body) < length:
                body += connection.recv(65536)
            self._session(connection, method, target, body)
        elif target == "/v1/whoami":
            self._json(connection, 200, {"address": peer[0], "port": peer[1]})
        else:
            self.peers.append(peer[0])
            claim = re.search(rb"(?i)x-tandem-session: (\S+)", head)
            status = self.behaviour.status if claim and claim[1].decode() in self._open else 403
            if method == "POST":
                self._upload(connection, len(body), length)
            elif status != 200:
                self._json(connection, status, {"error": "as told"})
            else:
                self._download(connection, parse_qs(urlsplit(target).query))

    def _session(self, connection: socket.socket, method: str, target: str, body: bytes) -> None:
        if method != "POST":
            self._open.discard(target.rsplit("/", 1)[1])
            self._json(connection, 200, self.behaviour.sender)
            return
        self.opened.append(json.loads(body))
        session = f"s{len(self.opened)}"
        self._open.add(session)
        told: dict[str, object] = {"session": session, "key": "00" * 32, "measurement_port": self.measurement_port}
        if self.behaviour.further_addresses is not None:
            told["further_addresses"] = self.behaviour.further_addresses
        refused = self.behaviour.session_status != 201
        self._json(connection, self.behaviour.session_status, {"error": "as told"} if refused else told)

    @staticmethod
    def _json(connection: socket.socket, status: int, answer: object) -> None:
        body = json.dumps(answer).encode()
        connection.sendall(
            f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        )

    def _finish(self, connection: socket.socket, then: str) -> None:
        if then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        elif then == "stall":
            self._closing.wait()

    def _pace(self, begun: float, count: int) -> None:
        if self.behaviour.rate:
            self._closing.wait(max(0.0, begun + count / self.behaviour.rate - time.monotonic()))

    def _download(self, connection: socket.socket, query: dict[str, list[str]]) -> None:
        total = int(query["bytes"][0]) if "bytes" in query else None
        seconds = float(query["seconds"][0]) if "seconds" in query else None
        length = "" if total is None else f"Content-Length: {total}\r\n"
        connection.sendall(f"HTTP/1.1 200 OK\r\n{length}Connection: close\r\n\r\n".encode())
        after = self.behaviour.after
        piece = bytes(65536)
        sent, begun = 0, time.monotonic()
        while not self._closing.is_set():
            if total is not None and sent >= total:
                return
            if seconds is not None and time.monotonic() - begun >= seconds + _GRACE_S:
                return
            if after is not None and sent >= after:
                self._finish(connection, self.behaviour.then)
                return
            now = piece if total is None else piece[: total - sent]
            if after is not None:
                now = now[: after - sent]
            connection.sendall(now)
            sent += len(now)
            self._pace(begun, sent)

    def _upload(self, connection: socket.socket, count: int, length: int | None) -> None:
        how, after, begun = self.behaviour.upload, self.behaviour.after or 0, time.monotonic()
        if how == "refuse":
            self._json(connection, 403, {"error": "as told"})
            while connection.recv(65536):
                pass  # until the client is gone: closed before, what it had sent would come back as a reset
            return
        if how == "early":
            self._json(connection, 200, {"bytes": 0, "duration_s": 0.1})
        while length is None or count < length:
            if how in ("deaf", "reset", "close") and count >= after:
                self._finish(connection, "stall" if how == "deaf" else how)
                return
            piece = connection.recv(65536)
            if not piece:
                break
            count += len(piece)
            self._pace(begun, count)
        if how == "silent":
            self._closing.wait()
        elif how == "endless":
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not self._closing.wait(0.01):
                connection.sendall(b"X: y\r\n" * 500)
        elif how == "nonsense":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n]nope")
        elif how != "early":
            told = count - 1 if how == "short" else count
            self._json(connection, 200, {"bytes": told, "duration_s": max(1e-6, time.monotonic() - begun)})
