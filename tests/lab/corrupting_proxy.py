"""A TLS-terminating proxy before the gateway that corrupts one chunk in fifty of what is uploaded: inside TLS nobody else could.

``python corrupting_proxy.py PORT CERTIFICATE KEY CA NAME GATEWAY_PORT LOG``: one line of LOG for each chunk that it corrupted.
"""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 256 * 1024
EVERY = 50
FIRST = 20
"""Chunks of the whole test that go by before the first one is corrupted."""


class Chunks:
    """Counts what is uploaded, over all connections."""

    def __init__(self, log: Path) -> None:
        self._log, self._lock, self._seen = log, threading.Lock(), 0

    def passed(self, piece: bytes) -> bytes:
        """``piece``, with a bit turned where a chunk's turn has come."""
        with self._lock:
            before, self._seen = self._seen, self._seen + len(piece)
            turns = [(before + EVERY * CHUNK_BYTES - FIRST * CHUNK_BYTES) // (EVERY * CHUNK_BYTES)]
            turns.append((self._seen + EVERY * CHUNK_BYTES - FIRST * CHUNK_BYTES) // (EVERY * CHUNK_BYTES))
            if turns[0] == turns[1]:
                return piece
            with self._log.open("a") as lines:
                lines.write(f"{before}\n")
            return bytes([piece[0] ^ 1]) + piece[1:]


def requests(stream: BinaryIO, gateway: ssl.SSLSocket, chunks: Chunks) -> None:
    """From the probe to the gateway, request by request."""
    while head := stream.readline():
        lines = [head]
        while (line := stream.readline()) not in (b"\r\n", b""):
            lines.append(line)
        names = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
        gateway.sendall(b"".join(lines) + b"\r\n")
        left, upload = int(names.get(b"content-length", b"0")), head.startswith(b"PATCH")
        while left > 0:
            piece = stream.read(min(left, 8192))
            if not piece:
                break
            left -= len(piece)
            gateway.sendall(chunks.passed(piece) if upload else piece)
    gateway.shutdown(socket.SHUT_WR)


def serve(
    plain: socket.socket, inner: ssl.SSLContext, outer: ssl.SSLContext, name: str, port: int, chunks: Chunks
) -> None:
    try:
        with (
            inner.wrap_socket(plain, server_side=True) as probe,
            socket.create_connection(("127.0.0.1", port)) as to_gateway,
            outer.wrap_socket(to_gateway, server_hostname=name) as gateway,
        ):

            def answers() -> None:
                try:
                    while piece := gateway.recv(65536):
                        probe.sendall(piece)
                    probe.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # either end went away

            thread = threading.Thread(target=answers, daemon=True)
            thread.start()
            with probe.makefile("rb") as stream:
                requests(stream, gateway, chunks)
            thread.join()
    except OSError:
        plain.close()  # the link was cut: both ends learn of it


def main() -> None:
    port, certificate, key, ca, name, gateway_port, log = sys.argv[1:]
    inner = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inner.load_cert_chain(certificate, key)
    outer = ssl.create_default_context(cafile=ca)
    chunks = Chunks(Path(log))
    with socket.create_server(("0.0.0.0", int(port)), backlog=32) as listening:  # noqa: S104 in a namespace of its own
        print("ready", flush=True)
        while True:
            plain, _ = listening.accept()
            one = (plain, inner, outer, name, int(gateway_port), chunks)
            threading.Thread(target=serve, args=one, daemon=True).start()


if __name__ == "__main__":
    main()
