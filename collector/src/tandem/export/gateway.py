"""One HTTPS connection to the gateway over one path, kept open between requests, its bytes counted."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_ANSWER_BYTES = 4 * 1024 * 1024
_BYTES_ACKED_AT, _BYTES_RECEIVED_AT, _TCP_INFO_BYTES = 120, 128, 136


class SetupError(ValueError):
    """The gateway cannot be asked as configured (URL, CA file, token); one line with the mend."""


class LinkError(Exception):
    """This path did not bring an answer; another one may."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``content`` is the JSON of the answer, None when it is none. ``retry_after_s``: what the server asked for."""

    status: int
    content: Any
    retry_after_s: float | None

    @property
    def error(self) -> str:
        """The server's reason, for people."""
        told = self.content.get("error") if isinstance(self.content, dict) else None
        # Bounded and on one line: what a broken server says must not fill a log.
        return f"HTTP {self.status}" + (f": {' '.join(told[:1000].split())[:300]}" if isinstance(told, str) else "")


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where the gateway is and how to know it and be known by it."""

    host: str
    port: int
    tls: ssl.SSLContext
    token: str

    @classmethod
    def of(cls, url: str, ca_file: Path | None, token_file: Path) -> GatewayAddress:
        """From the configuration; SetupError names what is wrong. ``ca_file`` None: the system's authorities."""
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise SetupError(f"gateway {url!r}: not of the form https://HOST:PORT; mend the URL")
        try:
            tls = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        except (OSError, ssl.SSLError) as error:
            raise SetupError(f"ca_file {ca_file}: {error}; mend: copy the server's ca.pem there") from error
        try:
            token = token_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(
                f"token_file {token_file}: {error}; mend: tandem-server probe add NAME --token-file"
            ) from error
        if not token or not token.isascii() or not token.isprintable():
            raise SetupError(f"token_file {token_file}: holds no token; mend: tandem-server probe rotate NAME")
        return cls(parts.hostname, parts.port or 443, tls, token)


class _Bound(http.client.HTTPSConnection):
    """HTTPS that leaves by one interface."""

    def __init__(self, address: GatewayAddress, interface: str | None, connect_s: float, answer_s: float) -> None:
        super().__init__(address.host, address.port, timeout=connect_s, context=address.tls)
        self._tls, self._interface, self._answer_s = address.tls, interface, answer_s

    def connect(self) -> None:
        """Called by http.client."""
        error: OSError = OSError(f"{self.host} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(self.host, self.port, 0, socket.SOCK_STREAM):
            plain = socket.socket(family, kind, protocol)
            try:
                plain.settimeout(self.timeout)
                if self._interface is not None:
                    plain.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._interface.encode() + b"\0")
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                plain.connect(address)
                self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)
            except OSError as refused:
                plain.close()
                error = refused
                continue
            self.sock.settimeout(self._answer_s)
            return
        raise error


class Link:
    """The gateway over one path. ``interface`` says where it leaves now, None: as the routes have it. Not for several threads at once.

    ``control_bytes``: bytes of TCP payload in both directions that this link moved, TLS included.
    """

    def __init__(
        self,
        path: str,
        interface: Callable[[], str | None],
        address: GatewayAddress,
        connect_s: float = 5.0,
        answer_s: float = 15.0,
    ) -> None:
        self.path = path
        self._address, self._interface = address, interface
        self._timeouts = connect_s, answer_s
        self._connection: _Bound | None = None
        self._left_by: str | None = None
        self._counted = 0
        self._closed_bytes = 0
        self._aborted = False

    @property
    def control_bytes(self) -> int:
        """As of the last request."""
        return self._closed_bytes + self._counted

    def ask(self, method: str, url: str, content: bytes, headers: dict[str, str]) -> Answer:
        """One request; LinkError when no whole answer comes. A kept connection that had gone stale is replaced once."""
        fresh = self._connection is None
        try:
            return self._exchange(method, url, content, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if fresh or self._aborted or isinstance(error, TimeoutError):
                raise LinkError(_describe(error)) from error
        try:
            return self._exchange(method, url, content, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise LinkError(_describe(error)) from error

    def _exchange(self, method: str, url: str, content: bytes, headers: dict[str, str]) -> Answer:
        if self._aborted:
            raise OSError("ended")
        interface = self._interface()
        if self._connection is not None and interface != self._left_by:
            self.close()
        if self._connection is None:
            self._left_by = interface
            self._connection = _Bound(self._address, interface, *self._timeouts)
        connection = self._connection
        connection.request(method, url, content, {**headers, "Authorization": f"Bearer {self._address.token}"})
        response = connection.getresponse()
        raw = response.read(_ANSWER_BYTES + 1)
        self._count()
        if response.will_close or len(raw) > _ANSWER_BYTES:
            self.close()
        try:
            told = json.loads(raw)
        except (ValueError, RecursionError):
            told = None
        return Answer(response.status, told, _seconds(response.getheader("Retry-After")))

    def _count(self) -> None:
        """What the kernel says the connection moved. A socket that is gone keeps its last count."""
        if self._connection is None or self._connection.sock is None:
            return
        with contextlib.suppress(OSError, struct.error):
            told = self._connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            acked, received = (
                struct.unpack_from("=Q", told, _BYTES_ACKED_AT),
                struct.unpack_from("=Q", told, _BYTES_RECEIVED_AT),
            )
            self._counted = acked[0] + received[0]

    def abort(self) -> None:
        """End a request that waits in another thread; it raises LinkError there, as every request from now on."""
        self._aborted = True
        connection = self._connection
        sock = None if connection is None else connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                # The plain socket's method: TLS's would touch a state that the other thread uses.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the next request opens one again."""
        self._count()
        self._closed_bytes, self._counted = self._closed_bytes + self._counted, 0
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() and len(text) < 6 else None


def _describe(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "timeout"
    return " ".join(str(getattr(error, "strerror", None) or error or type(error).__name__).split())
