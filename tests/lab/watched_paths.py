"""Paths that are watched, and a transfer over them that goes on and on."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence

from support.two_paths import PATHS, SERVER, Lab, Spaces, up
from tandem.mptcp import sockets
from tandem.mptcp.paths import Path, PathEvent
from tandem.mptcp.watch import Watch
from tandem.mptcp_abi.reader import Reader


def cut_once(two: Lab, address: str) -> None:
    """As of a NAT that forgot the connections which the probe has from ``address`` now: what comes over them is answered by a reset, a new
    handshake is not."""
    bare = f"[{address}]" if ":" in address else address
    rows = two.probe.run(f"ss -Htn state established src '{bare}'").splitlines()
    ports = ", ".join(row.split()[2].rpartition(":")[2] for row in rows)
    family = "ip6" if ":" in address else "ip"
    two.server.run(
        f"nft 'add table inet cut; add chain inet cut in {{ type filter hook input priority 0; }}; "
        f"add rule inet cut in {family} saddr {address} tcp sport {{ {ports} }} reject with tcp reset'"
    )


class Watched:
    """Both paths up and watched by a thread, as the collector does."""

    def __init__(self, two: Spaces, wanted: Sequence[Path] = PATHS) -> None:
        self.two, self.paths = two, up(two, wanted)
        self.watch = two.probe.inside(lambda: Watch(self.paths))
        assert self.watch.restoring is None
        self.events: list[PathEvent] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: two.probe.inside(self._turn))
        self._thread.start()

    def _turn(self) -> None:
        while not self._stop.is_set():
            self.events += self.watch.turn()

    def of(self, kind: str) -> list[PathEvent]:
        return [event for event in self.events if event.kind == kind]

    def close(self) -> None:
        self._stop.set()
        self.watch.wake()
        self._thread.join()
        self.two.probe.inside(self.watch.close)


class Transfer:
    """Bytes that go on and on, from the server to the probe."""

    def __init__(self, two: Lab, primary: str, server: str = SERVER, options: sockets.Options | None = None) -> None:
        """``options.both_families``: the server listens for both too."""
        options = options or sockets.Options()
        six = options.both_families

        def listen() -> socket.socket:
            made = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM, 262)
            made.bind(("::" if six else server, 0))
            made.listen()
            return made

        self.listener = two.server.inside(listen)
        to = (server, self.listener.getsockname()[1])
        source = sockets.Source(f"tmp5-{primary}")
        self.client = two.probe.inside(lambda: sockets.connect("mptcp", to, source, 60, options)).socket
        self.server = self.listener.accept()[0]
        self.reader = Reader(self.client)
        self.received = 0
        self.ended: OSError | None = None
        self._threads = [threading.Thread(target=t) for t in (self._pump, self._drain)]
        for thread in self._threads:
            thread.start()

    def _pump(self) -> None:
        try:
            while True:
                self.server.sendall(bytes(65536))
        except OSError:
            return

    def _drain(self) -> None:
        try:
            while piece := self.client.recv(1 << 16):
                self.received += len(piece)
        except OSError as error:
            self.ended = error

    @property
    def token(self) -> int:
        mptcp = self.reader.read().mptcp
        assert mptcp is not None
        return mptcp.token

    def carrying(self) -> dict[str, int]:
        return {s.local.host: s.tcp.bytes_received or 0 for s in self.reader.read().subflows if s.alive and s.local}

    def close(self) -> None:
        """End it; once more is no harm."""
        for one in (self.client, self.server):
            with contextlib.suppress(OSError):  # ended by the test already
                one.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for thread in self._threads:
            thread.join()
        self.client.close()
        self.listener.close()
