"""Bare ends of one transfer, run inside namespaces: ``mptcp_ends.py send ADDRESS PORT SECONDS`` and
``mptcp_ends.py receive ADDRESS PORT SECONDS PROTOCOL SOURCE``.

The sender accepts one connection and writes for SECONDS, then says who called. The receiver reads for SECONDS after the
connection is there and says in one JSON line what came, by tenths of a second.
"""

from __future__ import annotations

import json
import socket
import sys
import time

MPTCP = 262


def send(address: str, port: int, seconds: float) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        print("ready", flush=True)
        connection, peer = listener.accept()
        print(json.dumps({"peer": peer[0]}), flush=True)
        with connection:
            connection.settimeout(20)
            block = bytes(65536)
            until = time.monotonic() + seconds
            try:
                while time.monotonic() < until:
                    connection.sendall(block)
            except ConnectionError:
                return  # the receiver has had its seconds


def receive(address: str, port: int, seconds: float, protocol: int, source: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as connection:
        if source != "-":
            connection.bind((source, 0))
        connection.settimeout(20)
        connection.connect((address, port))
        start = time.monotonic()
        tenths = [0] * round(seconds * 10)
        while chunk := connection.recv(1 << 20):
            index = int((time.monotonic() - start) * 10)
            if index >= len(tenths):
                break
            tenths[index] += len(chunk)
        print(json.dumps({"tenths": tenths, "bytes": sum(tenths)}), flush=True)


if __name__ == "__main__":
    role, to, at, span, *rest = sys.argv[1:]
    if role == "send":
        send(to, int(at), float(span))
    else:
        receive(to, int(at), float(span), int(rest[0]), rest[1])
