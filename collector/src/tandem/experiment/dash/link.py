"""The measured connection of a play: opened, kept from segment to segment, opened anew when it broke."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from tandem.experiment.base import Output, Stop
from tandem.experiment.control import Session, describe
from tandem.experiment.dash.fetch import Fetched, Fetcher, FetchError, Taker, request
from tandem.experiment.dash.model import Resource
from tandem.experiment.dash.request import Request
from tandem.experiment.environment import environment
from tandem.experiment.measured_connection import connect
from tandem.experiment.sampler import PathNames, Sampler
from tandem.mptcp import sockets
from tandem.mptcp.series import Series
from tandem.mptcp.statistics import Reader, StatisticsError

_PAUSE_S = 0.5
"""Before another connection is tried: a path that comes and goes is not hammered."""


class Link:
    """One play's connections, one at a time. ``connects``: how many were opened; all but the first are reconnects."""

    def __init__(self, asked: Request, session: Session, deadline_ns: int, output: Output, stop: Stop) -> None:
        self._asked, self._session, self.deadline_ns = asked, session, deadline_ns
        self._output, self._stop = output, stop
        self._names = PathNames(asked.paths)
        self._connected: sockets.Connected | None = None
        self._fetcher: Fetcher | None = None
        self._sampler: Sampler | None = None
        self._reader: Reader | None = None
        self.received = 0
        """Payload so far, of every kind and attempt."""
        self.connects = 0
        self.connect_ms: float | None = None
        self.tls_ms: float | None = None
        self.series: list[Series] = []
        self.environment: dict[str, Any] = environment(asked)

    @property
    def host(self) -> str:
        """As in Host and in URLs."""
        return self._asked.measurement.authority

    @property
    def root(self) -> str:
        """URL of the server that is measured."""
        return f"{self._asked.measurement.scheme}://{self.host}"

    def get(self, resource: Resource, keep: int | None = None, taker: Taker | None = None) -> Fetched:
        """Fetch, with as many attempts as asked for; FetchError when the last failed. ``keep``, ``taker``: see ``Fetcher.get``; what a
        taker has got cannot be taken back, so a request whose answer had begun is not made again."""
        attempt = 0
        while True:
            attempt += 1
            asked = self._request(resource)  # signed anew: it may be another connection's
            reused = self._fetcher is not None and self._fetcher.used
            try:
                fetched = self._once(asked, resource, keep, taker)
            except FetchError as error:
                self.close()
                # A kept connection that the server ended in the meantime is no failed attempt: the request never reached it.
                if reused and error.again and error.received == 0 and not str(error).startswith("stalled"):
                    attempt -= 1
                told = taker is not None and error.received > 0
                if told or not error.again or attempt >= self._asked.attempts or time.monotonic_ns() > self.deadline_ns:
                    raise
                if not reused:
                    self._stop.wait(_PAUSE_S)
                continue
            if fetched.closes:
                self.close()
            return fetched

    def _once(self, asked: bytes, resource: Resource, keep: int | None, taker: Taker | None) -> Fetched:
        if self._fetcher is None:
            self._open()
        if self._fetcher is None:
            raise FetchError("no connection", again=True)
        return self._fetcher.get(asked, resource.range, keep, taker)

    def _request(self, resource: Resource) -> bytes:
        """The bytes to send; FetchError for a URL elsewhere: measured is the path to this server, and no other is spoken to."""
        try:
            parts = urlsplit(resource.url)
            if f"{parts.scheme}://{parts.netloc}" != self.root:
                raise FetchError(f"{resource.url[:120]!r} is not on {self.root}", again=False)
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            return request(target or "/", self.host, self._session, resource.range)
        except ValueError as error:
            raise FetchError(f"a URL of the MPD: {error}", again=False) from error

    def _open(self) -> None:
        asked = self._asked
        lone6 = asked.kind == "mptcp" and any(sockets.only6(p.interface) for p in asked.paths)
        options = asked.options.here(sends=False, both_families=lone6 and sockets.multipath6())
        patience_s = min(asked.connect_timeout_s, max(0.1, (self.deadline_ns - time.monotonic_ns()) / 1e9))
        self.connects += 1
        try:
            with self._stop.interruptible():
                connected = connect(asked, asked.kind, asked.primary, patience_s, options)
        except OSError as error:
            raise FetchError(f"connect: {describe(error)}", again=True) from error
        if self.connect_ms is None:
            self.connect_ms, self.tls_ms = connected.connect_ms, connected.tls_ms
        series = Series(self._names.of)
        self.series.append(series)
        self._connected = connected
        self._reader = Reader(connected.socket)
        self._fetcher = Fetcher(connected.stream, asked.stall_s, self.deadline_ns, self._stop, self._count)
        expected = len(asked.used)
        arm = {"kind": asked.kind, "path": asked.primary.name}
        self._sampler = Sampler(
            connected.socket, series, lambda: self.received, self._output, asked.sample_hz, expected, arm
        )
        self._sampler.start()

    def _count(self, size: int) -> None:
        self.received += size

    def by_path(self) -> dict[str, int] | None:
        """What the kernel has received over each path of the open connection; None when none is open or it does not tell."""
        if self._reader is None:
            return None
        try:
            sample = self._reader.read()
        except StatisticsError:
            return None
        found: dict[str, int] = {}
        for subflow in sample.subflows:
            path = self._names.of(subflow).path
            if path is not None and subflow.tcp.bytes_received is not None:
                found[path] = found.get(path, 0) + subflow.tcp.bytes_received
        return found

    def close(self) -> None:
        """Close the connection, with a last sample. Nothing when none is open."""
        if self._connected is None:
            return
        if self._sampler is not None:
            self._sampler.stop()
        self.environment = environment(self._asked, self._connected.socket)
        self._connected.socket.close()
        self._connected = self._fetcher = self._sampler = self._reader = None


@contextmanager
def linked(link: Link) -> Iterator[Link]:
    """``link``, closed at the end whatever happens: its sampler is a thread."""
    try:
        yield link
    finally:
        link.close()
