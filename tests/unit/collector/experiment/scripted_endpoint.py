"""An endpoint on loopback that does what a test tells it to: sessions, downloads, an upload sink, and every way to misbehave."""

import json
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Script:
    """How the endpoint behaves. ``upload``: ok, deaf (never reads), reset, close, short (counts too few), refuse, early (answers at
    once), endless (a head without an end), nonsense (a body that is no JSON), silent (never answers). ``after``: bytes before it."""

    upload: str = "ok"
    after: int = 0
    download: str = "ok"
    rate: float = 0.0
    session_status: int = 201
    told: dict[str, Any] = field(default_factory=dict)
    """Further keys of each connection in DELETE's answer."""


class ScriptedEndpoint:
    """Listens at once. ``opened``: what was asked of each session; ``requests``: each measured request's line."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.opened: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.closed: list[str] = []
        self._end = threading.Event()
        self.listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        self.control, self.measurement = (f"http://127.0.0.1:{x.getsockname()[1]}" for x in self.listeners)
        self._threads: list[threading.Thread] = []
        for listener in self.listeners:
            self._start(self._accept, listener)

    def _start(self, call: Any, *args: Any) -> None:
        thread = threading.Thread(target=call, args=args)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """End every thread."""
        self._end.set()
        for listener in self.listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for thread in self._threads:
            thread.join(60)

    def server(self, folder: Path) -> dict[str, str]:
        """The parameter ``server``."""
        (folder / "token").write_text("secret")
        return {"control": self.control, "measurement": self.measurement, "token_file": str(folder / "token")}

    def _accept(self, listener: socket.socket) -> None:
        while not self._end.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(0.05)
            try:
                self._answer(connection)
            except ConnectionError:
                return  # clients of these tests come and go

    def _receive(self, connection: socket.socket, most: int = 65536) -> bytes:
        while not self._end.is_set():
            try:
                return connection.recv(most)
            except TimeoutError:
                continue
        return b""

    def _answer(self, connection: socket.socket) -> None:
        raw = b""
        while b"\r\n\r\n" not in raw:
            piece = self._receive(connection)
            if not piece:
                return
            raw += piece
        head, _, body = raw.partition(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if target.startswith("/v1/sessions"):
            while length and len(body) < int(length[1]):
                body += self._receive(connection)
            self._control(connection, method, target, body)
        elif target == "/v1/whoami":
            self._json(connection, 200, {"address": "127.0.0.1", "port": 1})
        elif target.startswith("/v1/upload"):
            self.requests.append(f"{method} {target}")
            self._upload(connection, body, int(length[1]) if length else None)
        else:
            self.requests.append(f"{method} {target}")
            self._download(connection, {k: v[0] for k, v in parse_qs(urlsplit(target).query).items()})

    def _control(self, connection: socket.socket, method: str, target: str, body: bytes) -> None:
        if method == "POST":
            self.opened.append(json.loads(body))
            status = self.script.session_status
            answer = {"session": f"s{len(self.opened)}", "key": "00" * 32} if status == 201 else {"error": "as told"}
            self._json(connection, status, answer)
        else:
            self.closed.append(target.rsplit("/", 1)[1])
            self._json(connection, 200, {"connections": [{"end": "complete", **self.script.told}]})

    def _json(self, connection: socket.socket, status: int, answer: object) -> None:
        body = json.dumps(answer).encode()
        connection.sendall(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def _reset(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def _upload(self, connection: socket.socket, begun: bytes, length: int | None) -> None:
        how, count, first = self.script.upload, len(begun), time.monotonic()
        if how == "refuse":
            self._json(connection, 403, {"error": "as told"})
            while self._receive(connection):
                pass  # until the client is gone: closed before, what it had sent would come back as a reset
            return
        if how == "early":
            self._json(connection, 200, {"bytes": 0, "duration_s": 0.1})
        while not (how == "deaf" and count >= self.script.after):
            if how in ("reset", "close") and count >= self.script.after:
                if how == "reset":
                    self._reset(connection)
                return
            if length is not None and count >= length:
                break
            piece = self._receive(connection)
            if not piece:
                break
            count += len(piece)
            if self.script.rate:
                self._end.wait(max(0.0, first + count / self.script.rate - time.monotonic()))
        if how in ("deaf", "silent"):
            self._end.wait()
        elif how == "endless":
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not self._end.wait(0.01):
                connection.sendall(b"X: y\r\n" * 500)
        elif how == "nonsense":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n]nope")
        elif how != "early":
            told = count - 1 if how == "short" else count
            self._json(connection, 200, {"bytes": told, "duration_s": max(1e-6, time.monotonic() - first)})

    def _download(self, connection: socket.socket, query: dict[str, str]) -> None:
        """A timed one goes on until the client, whose clock counts, closes."""
        total = int(query["bytes"]) if "bytes" in query else None
        length = "" if total is None else f"Content-Length: {total}\r\n"
        connection.sendall(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode())
        begun, sent = time.monotonic(), 0
        while not self._end.is_set():
            if total is not None and sent >= total:
                return
            if self.script.download != "ok" and sent >= self.script.after:
                if self.script.download == "stall":
                    self._end.wait()
                else:
                    self._reset(connection)
                return
            piece = bytes(min(16384, 16384 if total is None else total - sent))
            try:
                connection.sendall(piece)
            except TimeoutError:
                continue  # the client is slow to read; what of the piece was sent is not known, and of zeros no matter
            sent += len(piece)
            if self.script.rate:
                self._end.wait(max(0.0, begun + sent / self.script.rate - time.monotonic()))
