"""The bench's own DNS servers and TCP responders for a survey, as a process inside the server's namespace. Knows nothing of the kit.

``python names_server.py DNS_ADDRESS+OFFSET …``: each DNS server answers any name with a number in it (``n12.example``) by an
address of 192.88.99.0/24 (a block that nobody uses any more), host part ``1 + (12 + OFFSET) % 200``; ``nx…`` does not exist,
``mute…`` is never answered, ``private…`` is 10.0.0.1. A DNS server at an IPv6 address answers AAAA alone, in the same way of
2a0e:fff0::/64. Every address that listens takes connections on port 443; the system resets on
others. Prints ``ready``; ends when stdin closes.
"""

from __future__ import annotations

import re
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast


@contextmanager
def serving(enter: Sequence[str], *servers: str) -> Iterator[None]:
    """The process, ready. ``enter``: a command in front of it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*enter, sys.executable, __file__, *servers], **pipes, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield


def main() -> None:
    servers = {}
    poll = select.poll()
    for argument in sys.argv[1:]:
        address, _, offset = argument.partition("+")
        six = ":" in address
        made = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, 53))
        servers[made.fileno()] = (made, int(offset), six)
        poll.register(made, select.POLLIN)
    any6 = any(six for _, _, six in servers.values())
    listener = socket.socket(socket.AF_INET6 if any6 else socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("::" if any6 else "0.0.0.0", 443))  # noqa: S104  (inside a namespace that is joined to the lab's others alone)
    listener.listen(4096)
    listener.setblocking(False)
    poll.register(listener, select.POLLIN)
    poll.register(sys.stdin, select.POLLIN | select.POLLHUP)
    print("ready", flush=True)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == sys.stdin.fileno():
                return
            if descriptor == listener.fileno():
                _drain(listener)
            else:
                made, offset, six = servers[descriptor]
                raw, peer = made.recvfrom(2048)
                answered = answer(raw, offset, six)
                if answered:
                    made.sendto(answered, peer)


def _drain(listener: socket.socket) -> None:
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return
        except ConnectionError:
            continue


def answer(raw: bytes, offset: int, six: bool = False) -> bytes | None:
    end = raw.index(b"\0", 12)
    question = raw[12 : end + 5]
    label = cast("str", raw[13 : 13 + raw[12]].decode())
    kind = struct.unpack(">H", raw[end + 1 : end + 3])[0]
    if label.startswith("mute"):
        return None
    head = raw[:2] + (b"\x81\x83" if label.startswith("nx") else b"\x81\x80") + b"\0\1"
    number = re.search(r"\d+", label)
    if label.startswith("nx") or kind != (28 if six else 1) or number is None:
        return head + bytes(6) + question
    if six:
        six_address = bytes.fromhex("2a0efff0") + bytes(11) + bytes([1 + (int(number[0]) + offset) % 200])
        return head + b"\0\1" + bytes(4) + question + b"\xc0\x0c" + struct.pack(">HHIH", 28, 1, 60, 16) + six_address
    address = (
        bytes([10, 0, 0, 1])
        if label.startswith("private")
        else bytes([192, 88, 99, 1 + (int(number[0]) + offset) % 200])
    )
    return head + b"\0\1" + bytes(4) + question + b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + address


if __name__ == "__main__":
    main()
