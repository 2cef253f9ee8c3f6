"""The measured connections of one load: opened over the primary path, each with the session and the page named at its beginning, watched
while they live; and what one load came to.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

from tandem.experiment.control import Session, describe
from tandem.experiment.environment import environment
from tandem.experiment.measured_connection import same_version
from tandem.experiment.pageload.request import Request
from tandem.experiment.sampler import PathNames
from tandem.mptcp import sockets
from tandem.mptcp.series import Series
from tandem.mptcp.statistics import Reader, StatisticsError


@dataclass(slots=True)
class Load:
    """Times in ms since the load began, None for what was not reached. ``failure``: None when the page was loaded whole as far as it can
    be; objects that failed are no failure of the load, as a browser sees it."""

    page: str
    by: str
    load_ms: float | None = None
    content_loaded_ms: float | None = None
    first_paint_ms: float | None = None
    objects: int = 0
    failed: int = 0
    missed: int = 0
    failure: str | None = None
    retry: bool = True


@dataclass(slots=True)
class Carried:
    """One measured connection. ``received``: bytes of the page's origins over it, heads and TLS included."""

    connected: sockets.Connected
    reader: Reader
    series: Series
    received: int = 0
    over: bool = False


class Carrier:
    """Opens and watches connections, from any thread. ``refused``: why connections were refused or broke, in the order it happened.
    ``lack``: what this machine cannot do at all."""

    def __init__(self, request: Request, session: Session, page: str) -> None:
        self._request, self._session, self._page = request, session, page
        self._names = PathNames(request.paths)
        lone6 = request.kind == "mptcp" and any(sockets.only6(p.interface) for p in request.paths)
        self._options = request.options.here(sends=False, both_families=lone6 and sockets.multipath6())
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._address: tuple[str, int] | None = None
        self._thread = threading.Thread(target=self._watch, name="carrier", daemon=True)
        self.carried: list[Carried] = []
        self.refused: list[str] = []
        self.lack: sockets.UnsupportedError | None = None
        self._thread.start()

    def open(self, patience_s: float) -> Carried | None:
        """A connection to the endpoint, the page asked for; None when it failed, which ``refused`` tells."""
        asked = self._request
        try:
            if self._address is None:
                self._address = sockets.resolve(asked.measurement.host, asked.measurement.port, asked.primary.interface)
            timeout_s = min(asked.connect_timeout_s, max(0.1, patience_s))
            if asked.kind == "mptcp":
                same_version()
            connected = sockets.connect(asked.kind, self._address, asked.primary.source, timeout_s, self._options)
        except sockets.UnsupportedError as error:
            self.lack = error
            return None
        except OSError as error:
            self.note(f"connect: {describe(error)}")
            return None
        made = connected.socket
        # A request must not wait for the acknowledgement of the one before it; browsers say the same.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        carried = Carried(connected, Reader(made), Series(self._names.of))
        try:
            made.sendall(self._preamble())
        except OSError as error:
            self.note(describe(error))
            made.close()
            return None
        with self._lock:
            self.carried.append(carried)
        return carried

    def _preamble(self) -> bytes:
        target = f"/v1/page/{self._page}"
        head = (
            f"GET {target} HTTP/1.1",
            f"Host: {self._request.measurement.authority}",
            f"X-Tandem-Session: {self._session.claim(target)}",
            "Connection: Upgrade",
            "Upgrade: tandem-page",
        )
        return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")

    def note(self, reason: str) -> None:
        """Remember why a connection failed."""
        with self._lock:
            if len(self.refused) < 100:
                self.refused.append(reason[:200])

    def finish(self, carried: Carried) -> None:
        """Read its figures a last time and close it. Once more does nothing."""
        with self._lock:
            if not carried.over:
                self._sample(carried)
                carried.over = True
                carried.connected.socket.close()

    def sample(self) -> None:
        """Read the figures of all that are open."""
        with self._lock:
            for carried in self.carried:
                if not carried.over:
                    self._sample(carried)

    def close(self) -> None:
        """No more readings; what is still open is closed."""
        self._done.set()
        self._thread.join()
        for carried in tuple(self.carried):
            self.finish(carried)

    def _watch(self) -> None:
        while not self._done.wait(1 / self._request.sample_hz):
            self.sample()

    @staticmethod
    def _sample(carried: Carried) -> None:
        # After a reset the kernel has forgotten the connection; the totals keep what was last seen.
        with contextlib.suppress(StatisticsError):
            carried.series.add(carried.reader.read(), carried.received)

    def environment(self) -> dict[str, Any]:
        """The machine now, and what the kernel says of a connection that is open."""
        with self._lock:
            made = next((c.connected.socket for c in reversed(self.carried) if not c.over), None)
            return environment(self._request, made)


def by_path(carried: list[Carried]) -> dict[str, int]:
    """Bytes that the kernel received over each known path, all connections together."""
    found: dict[str, int] = {}
    for one in carried:
        for total in one.series.totals.values():
            if total.name.path is not None:
                found[total.name.path] = found.get(total.name.path, 0) + total.bytes
    return found


def now_s() -> float:
    """The clock of all deadlines here."""
    return time.monotonic()
