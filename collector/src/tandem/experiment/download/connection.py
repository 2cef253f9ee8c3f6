"""What a download is to do, and its connection: a measured one that may have a number of subflows, ordered one by one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.experiment.base import Output, Stop
from tandem.experiment.control import further_addresses
from tandem.experiment.measured_connection import EMPTY, ConnectionRequest, MeasuredConnection, Terms, both_families
from tandem.experiment.parameters import ConnectionParameters, ProbePath, parameter
from tandem.mptcp import sockets
from tandem.mptcp.subflow_scheduler import SubflowOrders
from tandem.schema.manifest import Failure

SUBFLOWS = (1, 2, 4)
"""The primary path alone; two paths; two paths to two addresses of the server each."""
HELD_S = 5.0
"""For a request that waits for subflows. The endpoint waits for the rest of a head for longer."""
_BEGINNING = 4
"""Bytes of a request: "GET "."""


@dataclass(frozen=True, slots=True)
class Request(ConnectionParameters):
    """A download, checked. Exactly one of ``bytes`` and ``seconds`` is set. ``subflows`` None: the kernel opens one from each of its
    endpoints. ``join_before_request``: the request is held until they are there."""

    # fmt: off
    bytes: int | None = parameter("payload to download; this or seconds", "B", minimum=1, maximum=1e12)
    seconds: float | None = parameter("how long to download; this or bytes", "s", minimum=0.1, maximum=3600)
    whoami: bool = parameter("ask the endpoint for each path's public address first", default=True)
    stall_s: float = parameter("without a byte for so long the run has failed", "s", default=10.0, minimum=0.5, maximum=600)
    deadline_s: float = parameter("the whole run; by default seconds + 30, or 600", "s", minimum=1, maximum=7200)
    subflows: int | None = parameter(
        "of MPTCP, ordered one by one; by default one a path", "subflows", minimum=1, maximum=4, choices=SUBFLOWS)
    join_before_request: bool = parameter("with 2 or 4 subflows: hold the request until all are there", default=False)
    read_pause_s: float = parameter("between two reads in mid-stream", "s", default=0.004, minimum=0, maximum=0.1)
    # fmt: on

    @property
    def carrying(self) -> tuple[ProbePath, ...]:
        """The paths that the connection runs over, the primary first: of a number of subflows the first or the first two."""
        most = 1 if self.kind == "tcp" else len(self.paths) if self.subflows is None else min(self.subflows, 2)
        return self.paths[:most]

    @property
    def addresses_each(self) -> int:
        """To how many of the server's addresses each path has a subflow."""
        return 2 if self.subflows == 4 else 1


class DownloadConnection(MeasuredConnection):
    """``orders``: None where the kernel's own path manager has the connection; ``held_ms``: for how long the request was held, None where
    it was not to be."""

    def __init__(self, request: Request, output: Output) -> None:
        r = request
        timing = (r.connect_timeout_s, r.stall_s, r.sample_hz, r.read_pause_s)
        super().__init__(
            Terms(r, "download", *timing, r.options), ConnectionRequest(r.kind, r.primary, r.bytes, r.seconds)
        )
        self.request, self._output = request, output
        self.orders: SubflowOrders | None = None
        self.held_ms: float | None = None

    @property
    def expected_subflows(self) -> int:
        """How many there may be at once."""
        return self.request.subflows or len(self.request.carrying)

    def socket_options(self) -> sockets.Options:
        """Of this end's socket; the orders are made with it, so that they miss no event. sockets.UnsupportedError."""
        r = self.request
        further = [] if self.session is None else further_addresses(self.session.answer)
        if r.subflows is not None:
            self.orders = SubflowOrders({p.name: p.interface for p in r.carrying}, r.addresses_each, further)
        wanted = r.addresses_each > 1 and any(":" in address for address in further)
        both = both_families(r.kind, r.carrying, wanted=wanted)
        return r.options.here(sends=False, both_families=both, by_orders=r.subflows is not None)

    def transfer(self, deadline_ns: int, stop: Stop, output: Output, labels: Mapping[str, Any] = EMPTY) -> None:
        """Order subflows, and move the bytes. The line ``ordering`` has the collector leave this connection's subflows alone."""
        orders, connected = self.orders, self.connected
        if orders is not None and connected is not None:
            orders.begin(
                connected.socket,
                self.request.primary.name,
                lambda token: self._output.line("ordering", connection=f"{token:08x}"),
            )
        try:
            super().transfer(deadline_ns, stop, output, labels)
        finally:
            if orders is not None:
                orders.end()  # while the connection lives: its own end is no loss

    def move(self, connected: sockets.Connected, head: bytes, deadline_ns: int, stop: Stop) -> Failure | None:
        """As of every connection. Where subflows are to be there first, the beginning of the request lets the kernel order them (it takes
        an acknowledged byte of Multipath TCP), and the rest is held for ``HELD_S`` at most. What fails then fails again with the rest."""
        if self.request.join_before_request:
            begun_ns = time.monotonic_ns()
            with contextlib.suppress(OSError):
                connected.stream.sendall(head[:_BEGINNING])
                if self.orders is not None:
                    self.orders.await_there(self.request.subflows or 1, HELD_S, stop)
            head, self.held_ms = head[_BEGINNING:], (time.monotonic_ns() - begun_ns) / 1e6
        return super().move(connected, head, deadline_ns, stop)

    def close(self, stop: Stop) -> None:
        """Close the connection, its orders, and the session. Main thread only."""
        with self.orders or contextlib.nullcontext():
            super().close(stop)

    @property
    def samples(self) -> dict[str, Any] | None:
        """How many there were, and how late the latest; None before the transfer."""
        s = self.sampler
        return None if s is None else {"made": s.made, "failed": s.failed, "late_ms_max": s.late_ms_max}

    @property
    def came(self) -> dict[tuple[str | None, str | None], int]:
        """When each ordered subflow was there (CLOCK_MONOTONIC ns), by the kernel's word; by path and the server's address."""
        subflows = [] if self.orders is None else self.orders.subflows
        return {(s.path, s.remote): s.came_ns for s in subflows if s.attempts and s.came_ns is not None}

    def report_orders(self) -> dict[str, Any]:
        """The result's part: how many subflows were requested and how many there were, and each order; ms from the first one's
        handshake."""
        seen = sum(total.established_ns is not None for total in self.series.totals.values())
        ordered = [] if self.orders is None else self.orders.subflows
        return {
            "subflows_asked": self.request.subflows,
            "subflows_reached": sum(s.came_ns is not None for s in ordered) if ordered else seen,
            "subflow_orders": None
            if self.orders is None
            else [
                {
                    "path": subflow.path,
                    "server_address": subflow.remote,
                    "ordered_ms": self._since_ms(subflow.ordered_ns),
                    "established_ms": self._since_ms(subflow.came_ns),
                    "attempts": subflow.attempts,
                    "why_not": subflow.why_not,
                }
                for subflow in ordered
                if subflow.attempts or subflow.came_ns is None
            ],
        }

    def _since_ms(self, at_ns: int | None) -> float | None:
        connected = self.connected
        return None if at_ns is None or connected is None else (at_ns - connected.connected_monotonic_ns) / 1e6
