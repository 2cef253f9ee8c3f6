"""One HTTP request to a stick's own web server: a socket of our own, bound to the stick's interface, and one deadline for all of it.

The standard library's client limits each wait, not their sum: a server that dribbles would hold a poll for ever. So the socket
never blocks, and every wait is one ``poll`` of the kernel until the same instant of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import errno
import http.client
import io
import os
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.at.errors import NoAnswer, PortLost

MAX_BODY_BYTES = 256 * 1024
"""Far more than any status page; what is longer is cut off and the answer refused."""


@dataclass(frozen=True)
class Answer:
    """What came back: names of ``headers`` in lower case, each with its values in order."""

    status: int
    headers: Mapping[str, tuple[str, ...]]
    body: str

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return next(iter(self.headers.get(name.lower(), ())), None)


def get(
    host: str,
    port: int,
    target: str,
    headers: Mapping[str, str],
    until: float,
    interface: str | None = None,
    post: str | None = None,
) -> Answer:
    """GET ``target``, or POST ``post`` to it, at ``host`` (an address: no name is looked up), all before ``until`` (CLOCK_MONOTONIC, s).

    NoAnswer when that passes, when the server closes in the middle, or says what is no HTTP or too much. PortLost when nobody is
    there or ``interface`` is gone. Redirects are not followed.
    """
    with _connected(host, port, until, interface) as sock:
        wire = _Wire(sock, until)
        client = http.client.HTTPConnection(host, port)
        client.sock = wire  # it needs makefile, sendall and close only
        try:
            body_sent = None if post is None else post.encode()
            client.putrequest("GET" if body_sent is None else "POST", target, skip_accept_encoding=True)
            for name, value in {**headers, "Connection": "close"}.items():
                client.putheader(name, value)
            if body_sent is not None:
                client.putheader("Content-Length", str(len(body_sent)))
            client.endheaders(body_sent)
            response = client.getresponse()
            body = response.read(MAX_BODY_BYTES + 1)
            # A body of announced length is read short without an error when the server closes in the middle; heads that are cut
            # short look like heads without a length and nothing behind them.
            short = response.length not in (None, 0) and len(body) <= MAX_BODY_BYTES
            short = short or (response.status == 200 and not body and response.length is None and not response.chunked)
        except (http.client.HTTPException, ValueError) as error:
            raise NoAnswer(f"{target}: no whole HTTP answer ({type(error).__name__})") from error
        except OSError as error:
            raise NoAnswer(f"{target}: {error.strerror or error}") from error
        finally:
            client.close()
    if short:
        raise NoAnswer(f"{target}: the server closed in the middle of its answer")
    if len(body) > MAX_BODY_BYTES:
        raise NoAnswer(f"{target}: an answer of more than {MAX_BODY_BYTES} bytes")
    found: dict[str, tuple[str, ...]] = {}
    for name, value in response.getheaders():
        found[name.lower()] = (*found.get(name.lower(), ()), value)
    return Answer(response.status, found, _text(body, response.headers.get_content_charset()))


def _text(body: bytes, charset: str | None) -> str:
    """The body's text in the charset that it names, else UTF-8; what does not fit is replaced, never an error."""
    for name in (charset, "utf-8"):
        if name is not None:
            try:
                return body.decode(name, "replace").removeprefix("\ufeff")
            except (LookupError, ValueError):
                continue  # a charset that nobody knows
    return body.decode("latin-1")


def _connected(host: str, port: int, until: float, interface: str | None) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        if interface is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
        code = sock.connect_ex((host, port))
        if code == errno.EINPROGRESS:
            _wait(sock, select.POLLOUT, until, "connecting")
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
    except OSError as error:
        sock.close()
        if error.errno == errno.ETIMEDOUT:
            raise NoAnswer(f"{host}: {error.strerror}") from error
        through = f" on {interface}" if interface else ""
        raise PortLost(f"http://{host}:{port}{through}: {error.strerror}") from error
    except NoAnswer:
        sock.close()
        raise
    return sock


def _wait(sock: socket.socket, event: int, until: float, doing: str) -> None:
    poller = select.poll()
    poller.register(sock, event)
    left_ms = (until - time.monotonic()) * 1000
    if left_ms <= 0 or not poller.poll(left_ms):
        raise NoAnswer(f"{doing}: no answer before the deadline")


class _Wire:
    """A socket as http.client uses one, with one deadline for everything."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until = sock, until

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        left = memoryview(data)
        while left:
            try:
                left = left[self._sock.send(left, socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                _wait(self._sock, select.POLLOUT, self._until, "sending")

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What the response is read from."""
        return io.BufferedReader(_Incoming(self._sock, self._until))

    def close(self) -> None:
        """The socket is closed by who opened it."""


class _Incoming(io.RawIOBase):
    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until = sock, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - what can be written to has no name before Python 3.12
        while True:
            # Asked before each read: a server that always has one more byte must not outlast the deadline.
            _wait(self._sock, select.POLLIN, self._until, "receiving")
            try:
                return self._sock.recv_into(buffer)
            except BlockingIOError:
                continue
