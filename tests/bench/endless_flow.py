"""A connection over which the server sends as fast as it may, on either kernel: for ``bench_congestion.py`` and ``stacks_scene.py``."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from support.emulated_links import RadioPair
from support.two_paths import SERVER
from tandem.mptcp import kernels
from tandem.mptcp_abi import v094
from tandem.mptcp_abi.reader import Reader

A, A_TOO, B = "10.71.1.1", "10.71.1.3", "10.71.2.1"
PATIENCE_S = 300.0


class SubflowLostError(Exception):
    """A lossy link takes one now and then, and nobody brings it back here."""


class Flow:
    """From ``source``; the server's end has ``controller``, on every subflow on either kernel."""

    def __init__(self, pair: RadioPair, controller: str, source: str, *, multipath: bool) -> None:
        kernel = kernels.here()

        def make() -> socket.socket:
            return kernel.open_socket(socket.AF_INET, multipath=multipath)

        def control(end: socket.socket) -> None:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())

        self.listener, self.client = pair.server.inside(make), pair.probe.inside(make)
        if v094.present():
            control(self.listener)
        self.listener.bind((SERVER, 0))
        self.listener.listen()  # kept: it takes the joins too
        self.client.bind((source, 0))
        self.client.settimeout(PATIENCE_S)
        self.client.connect(self.listener.getsockname())
        self.server, _ = self.listener.accept()
        if not v094.present():
            control(self.server)
        self.reader = pair.server.inside(lambda: Reader(self.server))
        self._threads: list[threading.Thread] = []

    def send_endlessly(self) -> None:
        """Until ``close``."""
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        block = bytes(1 << 16)
        try:
            while True:
                self.server.sendall(block)
        except OSError:
            return

    def _receive(self) -> None:
        try:
            while self.client.recv(1 << 18):
                pass
        except OSError:
            return

    def acked(self) -> dict[str, int]:
        """Bytes by the probe's address."""
        flows = enumerate(self.reader.read().subflows)
        return {one.remote.host if one.remote else str(n): one.tcp.bytes_acked or 0 for n, one in flows}

    def joined(self, within_s: float) -> None:
        """Wait until both subflows carry."""
        until_s = time.monotonic() + within_s
        while sum(got > 0 for got in self.acked().values()) < 2:
            if time.monotonic() > until_s:
                raise SubflowLostError
            time.sleep(0.05)

    def close(self) -> None:
        """Its queue is thrown away with it."""
        for end in (self.server, self.client):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
        for end in (self.server, self.client, self.listener):
            end.close()


@contextmanager
def flow(
    pair: RadioPair, controller: str, source: str, *, multipath: bool = True, endless: bool = True
) -> Iterator[Flow]:
    made = Flow(pair, controller, source, multipath=multipath)
    try:
        if endless:
            made.send_endlessly()
        yield made
    finally:
        made.close()
