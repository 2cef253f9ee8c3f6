"""A measurement listener in this process, and a client that speaks to it in bytes."""

import contextlib
import functools
import ipaddress
import json
import socket
import sqlite3
import ssl
import tempfile
import threading
import time
from pathlib import Path

from tandem.experiment.control import Session
from tandem.mptcp_abi import IPPROTO_MPTCP
from tandem.schema.line_protocol import parse
from tandem_server.cli.configuration import Bounds
from tandem_server.cli.listeners import measurement_bounds
from tandem_server.cli.tls import make
from tandem_server.endpoint.flows import PathPeer
from tandem_server.endpoint.http1 import tls_context
from tandem_server.endpoint.listener import Acceptor, listen
from tandem_server.endpoint.measurement import Measurement
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.sessions import SessionRequest, SessionTable
from tandem_server.http.connections import ConnectionLimiter

PATHS = {"a": PathPeer("A", "127.0.0.1"), "b": PathPeer("B", None)}
PATIENCE_S = 60
"""For what comes in its own time; a machine that has much else to do is late."""


def wait_until(condition, what=""):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def request(target, session=""):
    return head("GET", target, session)


def head(method, target, session="", *lines):
    """A request's head; ``lines``: more headers."""
    first = f"{method} {target} HTTP/1.1", "Host: x", f"X-Tandem-Session: {claim(method, target, session)}"
    return "\r\n".join([*first, *lines, "", ""]).encode()


OPENED = {}
"""As their probe knows them: the sessions of all tables here, by id."""


def claim(method, target, session):
    """Of an open session's next connection; of what is none, as it is."""
    return OPENED[session].claim(target, method) if session in OPENED else session


class KnownTable(SessionTable):
    def open(self, *args, **named):
        session = super().open(*args, **named)
        OPENED[session.id] = Session(session.id, session.key, "a")
        return session


@contextlib.contextmanager
def full_disk(registry):
    """Its file takes no row of a session meanwhile."""
    with contextlib.closing(sqlite3.connect(registry.file)) as connection:
        for action in ("INSERT", "UPDATE"):
            refusal = "SELECT RAISE(FAIL, 'database or disk is full')"
            connection.execute(f"CREATE TRIGGER full_{action} BEFORE {action} ON sessions BEGIN {refusal}; END")
        yield
        for action in ("INSERT", "UPDATE"):
            connection.execute(f"DROP TRIGGER full_{action}")


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
    def __init__(self):
        self.lines = []

    def write(self, lines):
        self.lines += lines
        return []


class Endpoint:
    def __init__(self, registry, limits, content=None, pages=None, limits_on_connections=None):
        self.registry, self.shelf = registry, Shelf()
        self.sessions = KnownTable(registry, limits)
        self.recorder = Recorder(lambda: self.shelf)
        self.listener = listen("127.0.0.1", 0)
        self.port = self.listener.getsockname()[1]
        tls_listener = listen("127.0.0.1", 0)
        self.tls_port = tls_listener.getsockname()[1]
        self.measurement = Measurement(self.sessions, limits, self.recorder, "boot-1", content, contexts()[0], pages)
        self.limiter = ConnectionLimiter(limits_on_connections or measurement_bounds(Bounds()))
        # Sessions are in this process here: nobody asks for them, so that all connections stay unauthenticated.
        serve, serve_tls = (
            lambda *them, each=each: each(*them[:4]) for each in (self.measurement.serve, self.measurement.serve_tls)
        )
        self.acceptor = Acceptor(self.listener, serve, self.limiter, [(tls_listener, serve_tls)])
        self._stopped = threading.Lock()
        if not any(probe.name == "probe-1" for probe in registry.probes.all()):
            registry.probes.add("probe-1")

    def session(self, kind="mptcp", payload_bytes=None, tls=False):
        return self.sessions.open("probe-1", SessionRequest("run-1", kind, "a", PATHS, payload_bytes, None, tls=tls))

    def secure(self, kind="mptcp"):
        """A connection with TLS, by the library's own sockets."""
        return contexts()[1].wrap_socket(self.connect(kind, self.tls_port), server_hostname="127.0.0.1")

    def connect(self, kind="mptcp", port=None):
        proto = IPPROTO_MPTCP if kind == "mptcp" else socket.IPPROTO_TCP
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, proto)
        client.settimeout(PATIENCE_S)
        try:
            client.connect(("127.0.0.1", port or self.port))
        except OSError:
            client.close()
            raise
        return client

    def get(self, target, session="", kind="mptcp"):
        return self.exchange(request(target, session), kind)

    def exchange(self, sent, kind="mptcp"):
        with self.connect(kind) as client:
            client.sendall(sent)
            return read_answer(client)

    @contextlib.contextmanager
    def downloading(self, session, query="seconds=3000", kind="mptcp", receive_buffer=None):
        """A client whose download has begun; it reads no more by itself."""
        with self.connect(kind) as client:
            if receive_buffer:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            client.sendall(request(f"/v1/download?{query}", session.id))
            assert client.recv(1)
            yield client

    def ended(self, session):
        """The summary of the session's one connection, once that has ended by itself; the session is ended."""
        wait_until(lambda: session.summaries and not session.live, "no connection came to its end")
        (summary,) = self.sessions.end(session.id, "probe-1").summaries
        return summary

    def points(self):
        self.recorder.close()
        return [parse(line) for line in self.shelf.lines]

    def stop(self):
        if self._stopped.acquire(blocking=False):
            self.sessions.end_all()
            self.acceptor.stop()
            self.recorder.close()


def read_kept(file, method="GET"):
    """Status, headers, body of one answer of several on a connection."""
    status, headers = int(file.readline().split()[1]), {}
    while (line := file.readline()) != b"\r\n":
        name, value = line.decode("latin-1").rstrip().lower().split(": ", 1)
        headers[name] = value
    return status, headers, b"" if method == "HEAD" else file.read(int(headers.get("content-length", 0)))


def heard(client):
    """What still comes until the end of the connection, a reset included."""
    told = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while more := client.recv(1 << 20):
            told += more
    return bytes(told)


def read_answer(client):
    received = b"".join(iter(lambda: client.recv(1 << 20), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    status = int(first.split()[1])
    return status, headers, json.loads(body) if "json" in headers.get("content-type", "") else body
