"""A small endpoint for tests: sessions without TLS, whoami, and downloads that can be made to misbehave."""

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


@dataclass
class Behaviour:
    """``rate`` bytes/s, 0 for unlimited; ``after`` that many bytes do ``then``: "reset", "close", "stall" or nothing.
    ``further_addresses``: in the session's answer, whatever it is."""

    rate: float = 0.0
    after: int | None = None
    then: str = ""
    status: int = 200
    session_status: int = 201
    further_addresses: object = None
    sender: dict[str, object] = field(default_factory=lambda: {"bytes_sent": 0, "connections": []})


class Endpoint:
    """Listens at once; ``protocol`` of the measurement port is MPTCP unless told otherwise."""

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
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
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
        with connection:
            try:
                self._answer(connection, peer)
            except OSError:
                return

    def _answer(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        raw = b""
        while b"\r\n\r\n" not in raw:
            piece = connection.recv(65536)
            if not piece:
                return
            raw += piece
        head, _, body = raw.partition(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        while length and len(body) < int(length[1]):
            body += connection.recv(65536)
        self.calls.append((method, target))
        if method == "POST":
            self.opened.append(json.loads(body))
            session = f"s{len(self.opened)}"
            self._open.add(session)
            refused = self.behaviour.session_status != 201
            told = {"session": session, "key": "00" * 32, "measurement_port": self.measurement_port}
            if self.behaviour.further_addresses is not None:
                told["further_addresses"] = self.behaviour.further_addresses
            answer = {"error": "as told"} if refused else told
            self._json(connection, self.behaviour.session_status, answer)
        elif method == "DELETE":
            self._open.discard(target.rsplit("/", 1)[1])
            self._json(connection, 200, self.behaviour.sender)
        elif target == "/v1/whoami":
            self._json(connection, 200, {"address": peer[0], "port": peer[1]})
        else:
            self.peers.append(peer[0])
            token = re.search(rb"(?i)x-tandem-session: (\S+)", head)
            status = self.behaviour.status if token and token[1].decode() in self._open else 403
            if status != 200:
                self._json(connection, status, {"error": "as told"})
            else:
                self._download(connection, parse_qs(urlsplit(target).query))

    @staticmethod
    def _json(connection: socket.socket, status: int, answer: object) -> None:
        body = json.dumps(answer).encode()
        connection.sendall(
            f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        )

    def _download(self, connection: socket.socket, query: dict[str, list[str]]) -> None:
        total = int(query["bytes"][0]) if "bytes" in query else None
        seconds = float(query["seconds"][0]) if "seconds" in query else None
        length = "" if total is None else f"Content-Length: {total}\r\n"
        connection.sendall(f"HTTP/1.1 200 OK\r\n{length}Connection: close\r\n\r\n".encode())
        b = self.behaviour
        piece = bytes(65536)
        sent, begun = 0, time.monotonic()
        while not self._closing.is_set():
            if total is not None and sent >= total:
                return
            if seconds is not None and time.monotonic() - begun >= seconds:
                return
            if b.after is not None and sent >= b.after:
                if b.then == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                elif b.then == "stall":
                    self._closing.wait(30)
                return
            now = piece if total is None else piece[: total - sent]
            if b.after is not None:
                now = now[: b.after - sent]
            connection.sendall(now)
            sent += len(now)
            if b.rate:
                self._closing.wait(max(0.0, begun + sent / b.rate - time.monotonic()))
