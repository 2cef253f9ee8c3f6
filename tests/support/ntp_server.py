"""A time server of the tests' own (RFC 5905, 7.3), which tells this machine's clock."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator

_SINCE_1900_S = 2_208_988_800
_PACKET = struct.Struct("!BBbbII4sQQQQ")


def _stamp(utc_ns: int) -> int:
    seconds, rest = divmod(utc_ns, 10**9)
    return ((seconds + _SINCE_1900_S) & 0xFFFFFFFF) << 32 | (rest << 32) // 10**9


@contextlib.contextmanager
def ntp_server(address: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """Its port, by itself on the loopback and one that is free."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answering:
        answering.bind((address, port))
        answering.settimeout(0.2)
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    asked, client = answering.recvfrom(512)
                except TimeoutError:
                    continue
                now = _stamp(time.time_ns())
                if len(asked) < _PACKET.size:
                    continue
                version, theirs = (asked[0] >> 3) & 7, _PACKET.unpack_from(asked)[-1]
                # Server, stratum 1, precision 2^-20 s; root delay and dispersion 1/65536 s.
                told = _PACKET.pack(
                    version << 3 | 4, 1, asked[2], -20, 1, 1, b"TEST", now, theirs, now, _stamp(time.time_ns())
                )
                answering.sendto(told, client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield answering.getsockname()[1]
        finally:
            ended.set()
            thread.join()
