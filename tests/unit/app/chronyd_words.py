"""What chronyd answers when it is asked for its tracking; as a program, one that answers so on its port until it is ended."""

import math
import socket
import struct
import sys


def as_chrony(value: float) -> int:
    """A number in chrony's own form (24 bits of coefficient beside its sign)."""
    if value == 0:
        return 0
    mantissa, exponent = math.frexp(value)
    coefficient = round(mantissa * 2**24)
    exponent += 1
    return (exponent % 128) << 25 | coefficient % 2**25


def answer(sequence: int, leap: int = 0, reference: int = 0xC0A80001, stratum: int = 2, correction: float = 0.0,
           delay: float = 0.02, dispersion: float = 0.001, status: int = 0) -> bytes:  # fmt: skip
    head = struct.pack("!BBHHHHHHHIII", 6, 2, 0, 33, 5, status, 0, 0, 0, sequence, 0, 0)
    numbers = (correction, -0.0005, 0.0, -12.5, 0.0, 0.75, delay, dispersion, 64.0)
    body = struct.pack("!I16sHHHHIII", reference, bytes(16), 1, 0, stratum, leap, 0, 0, 0)
    return head + body + struct.pack("!9I", *map(as_chrony, numbers)) + bytes(4)


def serve(port: int) -> None:
    """Answer for ever on loopback; ``ready`` is printed once that is so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as daemon:
        daemon.bind(("127.0.0.1", port))
        print("ready", flush=True)
        while True:
            asked, client = daemon.recvfrom(1024)
            daemon.sendto(answer(int.from_bytes(asked[8:12], "big")), client)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
