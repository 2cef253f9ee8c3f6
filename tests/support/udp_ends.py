"""Bare ends of numbered datagrams, run inside namespaces.

``udp_ends.py send ADDRESS PORT COUNT SIZE RATE [START_NS]`` sends COUNT datagrams of SIZE bytes (with IP and UDP headers) at
RATE bit/s from START_NS on; ``udp_ends.py receive PORT`` prints a JSON list of [number, sent_ns, got_ns] (CLOCK_MONOTONIC), once its
stdin has ended.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time

HEADERS = 28  # IPv4 and UDP
STAMP = struct.Struct("!QQ")


def send(address: str, port: int, count: int, size: int, rate: float, start_ns: int) -> None:
    gap_ns = size * 8e9 / rate
    start_ns = start_ns or time.monotonic_ns()
    filling = bytes(size - HEADERS - STAMP.size)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect((address, port))
        for number in range(count):
            wait_ns = start_ns + number * gap_ns - time.monotonic_ns()
            if wait_ns > 0:
                time.sleep(wait_ns / 1e9)
            out.send(STAMP.pack(number, time.monotonic_ns()) + filling)


def receive(port: int) -> None:
    """Until stdin ends; what has arrived by then is read."""
    got = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inlet:
        inlet.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE: only the link may drop
        inlet.bind(("0.0.0.0", port))  # noqa: S104 - alone in its namespace
        print("ready", flush=True)
        while inlet in select.select([inlet, sys.stdin], [], [])[0]:
            datagram = inlet.recv(2048)
            got.append((*STAMP.unpack_from(datagram), time.monotonic_ns()))
    print(json.dumps(got), flush=True)


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    if role == "send":
        send(rest[0], int(rest[1]), int(rest[2]), int(rest[3]), float(rest[4]), int(rest[5]) if rest[5:] else 0)
    else:
        receive(int(rest[0]))
