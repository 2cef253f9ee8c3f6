"""An endpoint that misbehaves, a port for each way to: a process of its own, so that no experiment holds its connections open.

    python hostile_endpoint.py

Prints one line, an object: ``control`` and ``measurement`` map each behaviour to a port; ``fair`` is the port of a control channel that
behaves. Ends with its stdin.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

PACE_S = 0.002
"""Between the pieces of what never ends: all of this runs beside the tests on one machine."""

RESET = b"\1\0\0\0\0\0\0\0"
"""SO_LINGER on, 0 s."""

SWALLOWS = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
"""Where a reflector would be."""
SWALLOWS.bind(("127.0.0.1", 0))
CLOCK = {"utc_minus_monotonic_ns": 0, "synchronised": None, "error_ms": None}
REFLECTOR = {"port": SWALLOWS.getsockname()[1], "clock": CLOCK}
SESSION = {"session": "0" * 31 + "1", "key": "00" * 32, "reflector": REFLECTOR}
PAGE_URL = "http://page.example/"
PAGE = {
    "url": PAGE_URL,
    "objects": [{"method": "GET", "url": PAGE_URL, "by": None, "status": 200, "bytes": 200_000, "after_load": False}],
    "tls": None,
}

Piece = bytes | float | None
"""Bytes to send, seconds to wait, None: reset."""


def asked_length(target: str) -> int:
    match = re.search(r"bytes=([0-9]+)", target)
    return int(match[1]) if match else 200_000


def head(length: int | str, *more: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", "Content-Type: application/octet-stream", f"Content-Length: {length}", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def silent(_target: str) -> Iterator[Piece]:
    yield 3600.0


def closes(_target: str) -> Iterator[Piece]:
    yield b""


def resets(_target: str) -> Iterator[Piece]:
    yield None


def stalls_in_the_head(_target: str) -> Iterator[Piece]:
    yield b"HTTP/1.1 200 OK\r\nContent-"
    yield 3600.0


def stalls_in_the_body(target: str) -> Iterator[Piece]:
    yield head(asked_length(target)) + bytes(min(1000, asked_length(target) - 1))
    yield 3600.0


def cuts_the_body(target: str) -> Iterator[Piece]:
    yield head(asked_length(target)) + bytes(min(1000, asked_length(target) - 1))


def resets_in_the_body(target: str) -> Iterator[Piece]:
    yield head(asked_length(target)) + bytes(min(1000, asked_length(target) - 1))
    yield 0.1
    yield None


def promises_too_much(target: str) -> Iterator[Piece]:
    yield head(10**15) + bytes(asked_length(target))


def promises_too_little(target: str) -> Iterator[Piece]:
    yield head(3) + bytes(asked_length(target))


def a_length_that_is_none(_target: str) -> Iterator[Piece]:
    yield head(-5) + bytes(1000)


def two_lengths(_target: str) -> Iterator[Piece]:
    yield head(5, "Content-Length: 6") + bytes(1000)


def chunks(_target: str) -> Iterator[Piece]:
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


def endless_headers(_target: str) -> Iterator[Piece]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in itertools.count():
        yield f"X-{number}: {'a' * 4000}\r\n".encode()


def one_endless_header(_target: str) -> Iterator[Piece]:
    yield b"HTTP/1.1 200 OK\r\nX: "
    while True:
        yield b"a" * 4000


def drops_of_a_head(_target: str) -> Iterator[Piece]:
    """Never so slow that a time-out for silence ends it."""
    yield b"HTTP/1.1 200 OK\r\nX: "
    while True:
        yield b"a"
        yield 0.1


def drops_of_a_body(target: str) -> Iterator[Piece]:
    yield head(asked_length(target))
    while True:
        yield b"a"
        yield 0.1


def an_endless_body(_target: str) -> Iterator[Piece]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    while True:
        yield bytes(4000)


def another_protocol(_target: str) -> Iterator[Piece]:
    yield b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(range(256)) * 10


def continues_without_end(_target: str) -> Iterator[Piece]:
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n"


def a_list_without_end(_target: str) -> Iterator[Piece]:
    body = b"[" * 500_000
    yield f"HTTP/1.1 201 Created\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


BEHAVIOURS: dict[str, Callable[[str], Iterator[Piece]]] = {
    behave.__name__: behave
    for behave in (
        silent, closes, resets, stalls_in_the_head, stalls_in_the_body, cuts_the_body, resets_in_the_body, promises_too_much,
        promises_too_little, a_length_that_is_none, two_lengths, chunks, endless_headers, one_endless_header, drops_of_a_head,
        drops_of_a_body, an_endless_body, another_protocol, continues_without_end, a_list_without_end,
    )
}  # fmt: skip


def answers(target: str, method: str, farewell: Callable[[str], Iterator[Piece]] | None) -> Iterator[Piece]:
    """A control channel that behaves, perhaps until a session ends."""
    if method == "DELETE" and farewell is not None:
        yield from farewell(target)
        return
    ended = {"bytes_sent": 0, "connections": []}
    status, told = (201, SESSION) if method == "POST" else (200, PAGE if method == "GET" else ended)
    body = json.dumps(told).encode()
    yield f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def serve(connection: socket.socket, behave: Callable[[str, str], Iterator[Piece]]) -> None:
    with connection, contextlib.suppress(OSError):
        asked = b""
        while b"\r\n\r\n" not in asked:
            more = connection.recv(65536)
            if not more:
                return
            asked += more
        method, target, _ = asked.split(b"\r\n")[0].decode().split(" ")
        for piece in behave(target, method):
            if piece is None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                return
            if isinstance(piece, float):
                connection.settimeout(piece)
                with contextlib.suppress(TimeoutError):
                    while connection.recv(65536):  # the rest of what it is sent, also the end
                        pass
                    return
            else:
                connection.settimeout(None)
                connection.sendall(piece)
                time.sleep(PACE_S)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(5)
        while connection.recv(65536):
            pass


def listen(behave: Callable[[str, str], Iterator[Piece]]) -> int:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, behave), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


def main() -> None:
    ports = {
        "measurement": {n: listen(lambda target, _method, b=b: b(target)) for n, b in BEHAVIOURS.items()},
        "control": {n: listen(lambda target, _method, b=b: b(target)) for n, b in BEHAVIOURS.items()},
        "farewell": {n: listen(lambda target, method, b=b: answers(target, method, b)) for n, b in BEHAVIOURS.items()},
        "fair": listen(lambda target, method: answers(target, method, None)),
    }
    print(json.dumps(ports), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
