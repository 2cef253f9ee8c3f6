"""An endpoint that misbehaves, a port for each way to: a process of its own, so that no experiment holds its connections open.

    python hostile_endpoint.py

Prints one line, an object: ``control`` and ``measurement`` map each behaviour to a port; ``fair`` is the port of a control channel that
behaves. Ends with its stdin.
"""

import contextlib
import itertools
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator

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


def part(target: str) -> bytes:
    """A head and the beginning of its body."""
    return head(asked_length(target)) + bytes(min(1000, asked_length(target) - 1))


def for_ever(first: bytes, piece: Callable[[int], bytes], pause_s: float = 0.0) -> Iterator[Piece]:
    """With a pause never so long that a time-out for silence ends it."""
    yield first
    for number in itertools.count():
        yield piece(number)
        if pause_s:
            yield pause_s


LINE = b"HTTP/1.1 200 OK\r\n"
LIST = b"[" * 500_000
BEHAVIOURS: dict[str, Callable[[str], Iterable[Piece]]] = {
    "silent": lambda _: [3600.0],
    "closes": lambda _: [b""],
    "resets": lambda _: [None],
    "stalls_in_the_head": lambda _: [LINE + b"Content-", 3600.0],
    "stalls_in_the_body": lambda target: [part(target), 3600.0],
    "cuts_the_body": lambda target: [part(target)],
    "resets_in_the_body": lambda target: [part(target), 0.1, None],
    "promises_too_much": lambda target: [head(10**15) + bytes(asked_length(target))],
    "promises_too_little": lambda target: [head(3) + bytes(asked_length(target))],
    "a_length_that_is_none": lambda _: [head(-5) + bytes(1000)],
    "two_lengths": lambda _: [head(5, "Content-Length: 6") + bytes(1000)],
    "chunks": lambda _: [LINE + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"],
    "endless_headers": lambda _: for_ever(LINE, lambda number: f"X-{number}: {'a' * 4000}\r\n".encode()),
    "one_endless_header": lambda _: for_ever(LINE + b"X: ", lambda _: b"a" * 4000),
    "drops_of_a_head": lambda _: for_ever(LINE + b"X: ", lambda _: b"a", 0.1),
    "drops_of_a_body": lambda target: for_ever(head(asked_length(target)), lambda _: b"a", 0.1),
    "an_endless_body": lambda _: for_ever(LINE + b"\r\n", lambda _: bytes(4000)),
    "another_protocol": lambda _: [b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(range(256)) * 10],
    "continues_without_end": lambda _: for_ever(b"", lambda _: b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a_list_without_end": lambda _: [f"HTTP/1.1 201 Created\r\nContent-Length: {len(LIST)}\r\n\r\n".encode() + LIST],
}
"""Name → what is sent for a target."""


def answers(target: str, method: str, farewell: Callable[[str], Iterable[Piece]] | None) -> Iterator[Piece]:
    """A control channel that behaves, perhaps until a session ends."""
    if method == "DELETE" and farewell is not None:
        yield from farewell(target)
        return
    ended = {"bytes_sent": 0, "connections": []}
    status, told = (201, SESSION) if method == "POST" else (200, PAGE if method == "GET" else ended)
    body = json.dumps(told).encode()
    yield f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def serve(connection: socket.socket, behave: Callable[[str, str], Iterable[Piece]]) -> None:
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


def listen(behave: Callable[[str, str], Iterable[Piece]]) -> int:
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
