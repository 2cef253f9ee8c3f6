"""TLS on the measurement listener: TLS 1.3 alone, the control channel's certificate, and what comes before the handshake looked at."""

from __future__ import annotations

import socket
import ssl
import time
from pathlib import Path

from tandem.stream import TlsStream
from tandem.stream.tls import TlsError, strict
from tandem_server.endpoint.http1 import BadRequest

LEAST_HELLO_BYTES = 200
"""Of the first record. The answer has the certificate and is 900 bytes: who sends less would get more than three times that back."""

_HEADER_BYTES = 5
_HANDSHAKE = 0x16
_ILLEGAL = bytes.fromhex("15030300020228")
"""An alert: fatal, handshake_failure (RFC 8446, 6.2)."""


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """For ``accept``; OSError (ssl.SSLError is one) when the files are none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # nobody resumes here, and they would be counted among the first bytes of an answer
    context.load_cert_chain(certificate, key)
    return strict(context)


def accept(connection: socket.socket, context: ssl.SSLContext, within_s: float) -> tuple[TlsStream, float]:
    """The stream, and how long the handshake took in ms, from the first bytes' arrival.

    BadRequest, to be answered in the clear, to who speaks HTTP without TLS; TlsError for anything else; TimeoutError."""
    deadline_s = time.monotonic() + within_s
    begun = b""
    while len(begun) < _HEADER_BYTES:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TlsError("TLS: no handshake in time")
        connection.settimeout(left_s)
        try:
            more = connection.recv(4096)
        except TimeoutError:
            raise TlsError("TLS: no handshake in time") from None
        if not more:
            raise TlsError("TLS: closed before the handshake")
        begun += more
        if begun[:1].isalpha():
            raise BadRequest(400, "this port speaks TLS: ask by https")
        if begun[0] != _HANDSHAKE:
            raise TlsError("TLS: what came is no handshake")
    if int.from_bytes(begun[3:5], "big") < LEAST_HELLO_BYTES:
        connection.send(_ILLEGAL)
        raise TlsError(f"TLS: a hello below {LEAST_HELLO_BYTES} bytes")
    stream = TlsStream(connection, context)
    try:
        return stream, stream.handshake(max(0.001, deadline_s - time.monotonic()), begun)
    except TimeoutError:
        raise TlsError("TLS: no handshake in time") from None
