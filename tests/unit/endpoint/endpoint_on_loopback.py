"""A measurement listener in this process, and a client that speaks to it in bytes."""

import functools
import ipaddress
import json
import socket
import ssl
import tempfile
import threading
from pathlib import Path

from tandem.mptcp_abi import IPPROTO_MPTCP
from tandem.schema.line_protocol import parse
from tandem_server.cli.tls import make
from tandem_server.endpoint.listener import Acceptor, listen
from tandem_server.endpoint.measurement import Measurement
from tandem_server.endpoint.paths import PathPeer
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.secure import tls_context
from tandem_server.endpoint.sessions import SessionTable

PATHS = {"a": PathPeer("A", "127.0.0.1"), "b": PathPeer("B", None)}


def request(target, session=""):
    """What a client sends to begin a download."""
    return head("GET", target, session)


def head(method, target, session="", *lines):
    """A request's head; ``lines``: more headers."""
    first = f"{method} {target} HTTP/1.1", "Host: x", f"X-Tandem-Session: {session}"
    return "\r\n".join([*first, *lines, "", ""]).encode()


@functools.cache
def contexts():
    """The server's, and that of a client which trusts it."""
    files = make("server.tandem.test", [ipaddress.ip_address("127.0.0.1")], 2)
    with tempfile.TemporaryDirectory() as name:
        for file, (content, _) in files.items():
            (Path(name) / file).write_bytes(content)
        server = tls_context(Path(name) / "server.pem", Path(name) / "server.key")
    return server, ssl.create_default_context(cadata=files["ca.pem"][0].decode())


class Shelf:
    """Stands in for the database: keeps the lines."""

    def __init__(self):
        self.lines = []

    def write(self, lines):
        self.lines += lines
        return []


class Endpoint:
    def __init__(self, registry, limits, store=None, content=None, pages=None):
        self.registry, self.shelf = registry, store or Shelf()
        self.sessions = SessionTable(registry, limits)
        self.recorder = Recorder(lambda: self.shelf)
        self.listener = listen("127.0.0.1", 0)
        self.port = self.listener.getsockname()[1]
        tls_listener = listen("127.0.0.1", 0)
        self.tls_port = tls_listener.getsockname()[1]
        self.measurement = Measurement(self.sessions, limits, self.recorder, "boot-1", content, contexts()[0], pages)
        self.acceptor = Acceptor(
            self.listener,
            self.measurement.serve,
            limits.connections,
            limits.connections_per_address,
            [(tls_listener, self.measurement.serve_tls)],
        )
        self._stopped = threading.Lock()
        if not any(probe.name == "probe-1" for probe in registry.probes.all()):
            registry.probes.add("probe-1")

    def session(self, kind="mptcp", payload_bytes=None, seconds=None, tls=False):
        return self.sessions.open("probe-1", "run-1", kind, "a", PATHS, payload_bytes, seconds, tls=tls)

    def secure(self, kind="mptcp"):
        """A connection with TLS, by the library's own sockets."""
        return contexts()[1].wrap_socket(self.connect(kind, self.tls_port), server_hostname="127.0.0.1")

    def connect(self, kind="mptcp", port=None):
        proto = IPPROTO_MPTCP if kind == "mptcp" else socket.IPPROTO_TCP
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, proto)
        client.settimeout(20)
        try:
            client.connect(("127.0.0.1", port or self.port))
        except OSError:
            client.close()
            raise
        return client

    def get(self, target, session="", kind="mptcp"):
        """Status, headers, body of one request."""
        with self.connect(kind) as client:
            client.sendall(request(target, session))
            return read_answer(client)

    def count(self, target, session):
        """Bytes of head and payload of a download too large to keep."""
        buffer, total = bytearray(1 << 20), 0
        with self.connect() as client:
            client.sendall(request(target, session))
            while count := client.recv_into(buffer):
                total += count
        return total

    def points(self):
        """What was recorded so far; the recorder is closed."""
        self.recorder.close()
        return [parse(line) for line in self.shelf.lines]

    def stop(self):
        if self._stopped.acquire(blocking=False):
            self.sessions.end_all()
            self.acceptor.stop()
            self.recorder.close()


def read_answer(client):
    received = bytearray()
    while more := client.recv(1 << 20):
        received += more
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    status = int(first.split()[1])
    return status, headers, json.loads(body) if "json" in headers.get("content-type", "") else body
