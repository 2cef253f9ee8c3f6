"""A download by Multipath TCP or TCP as an experiment: whoami, session, connection, transfer with samples, result. Its connection is a
measured one that may have a number of subflows, ordered one by one.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tandem.experiment.base import STOPPED, MissingRequirementError, Outcome, Output, Span, Stop, StoppedError
from tandem.experiment.control import further_addresses, mapping, objects, real, whoami, whole
from tandem.experiment.measured_connection import EMPTY, MeasuredConnection, Terms, both_families
from tandem.experiment.parameters import (
    ConnectionParameters,
    Parameter,
    ParameterError,
    ProbePath,
    parameter,
    parameters_of,
    read_request,
)
from tandem.experiment.results import BYTES_BY_PATH, FIGURES, SENDER, bytes_by_path, environment
from tandem.mptcp import sockets
from tandem.mptcp.statistics import SubflowTotal, shares
from tandem.mptcp.subflow_scheduler import SubflowOrders
from tandem.schema.manifest import Failure


class SenderSide:
    """The session's last answer, with our own ``totals`` in their order (the first one first)."""

    def __init__(self, answer: dict[str, Any] | None, totals: Sequence[SubflowTotal]) -> None:
        connections = objects(mapping(answer).get("connections"))
        self._rows = [row for one in connections for row in objects(one.get("subflows"))]
        self._totals = totals

    def of(self, total: SubflowTotal) -> dict[str, Any] | None:
        """The sender's figures of this subflow; None where it is not known which they are. A path's only one; else the one from our port,
        which many NATs keep; else the one that came to the same of the server's addresses, the first or another."""
        rows = [row for row in self._rows if total.name.path is not None and row.get("path") == total.name.path]
        ours = [one for one in self._totals if one.name.path == total.name.path]
        if len(rows) == 1 and len(ours) == 1:
            return rows[0]
        by_port = [
            row
            for row in rows
            if total.local_port is not None and whole(mapping(row.get("remote")).get("port")) == total.local_port
        ]
        if len(by_port) == 1:
            return by_port[0]
        first, at_first = self._totals[0].remote, self._rows[0].get("local") if self._rows else None
        if total.remote is None or not isinstance(at_first, str):
            return None
        same = [row for row in rows if (row.get("local") == at_first) == (total.remote == first)]
        twins = [one for one in ours if (one.remote == first) == (total.remote == first)]
        return same[0] if len(same) == 1 and len(twins) == 1 else None

    def rtt_ms(self, total: SubflowTotal) -> float | None:
        """Its median RTT; where it is not known which is which, that of the subflow that carried most over the path."""
        row = self.of(total)
        if row is not None:
            return real(row.get("rtt_ms_median"))
        known = [
            (carried, rtt)
            for one in self._rows
            if total.name.path is not None and one.get("path") == total.name.path
            if (rtt := real(one.get("rtt_ms_median"))) is not None
            and (carried := real(one.get("bytes_acked"))) is not None
        ]
        return max(known)[1] if known else None

    def bytes_retrans(self, total: SubflowTotal) -> int | None:
        row = self.of(total)
        return whole(mapping(row).get("bytes_retrans"))

    @property
    def all_bytes_retrans(self) -> int | None:
        """On all subflows; None when it does not say of each."""
        counts = [whole(row.get("bytes_retrans")) for row in self._rows]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None


SUBFLOWS = (1, 2, 4)
"""The primary path alone; two paths; two paths to two addresses of the server each."""
HELD_S = 5.0
"""For a request that waits for subflows. The endpoint waits for the rest of a head for longer."""
_BEGINNING = 4
"""Bytes of a request: "GET "."""
_SAME_NS = 1_000_000_000
"""A sample shows a subflow a tenth of a second after it came, where it came late; an order is repeated after a second at the least."""


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


def read(p: dict[str, Any]) -> Request:
    """From parameters that are checked one by one to a request; ParameterError when they contradict each other."""
    if (p["bytes"] is None) == (p["seconds"] is None):
        raise ParameterError("give either 'bytes' or 'seconds'")
    wanted, paths = p["subflows"], len(p["paths"])
    if p["join_before_request"] and (wanted or 1) < 2:
        raise ParameterError("parameter 'join_before_request': give subflows = 2 or 4, which are waited for")
    if wanted is not None and p["kind"] == "tcp":
        raise ParameterError("parameter 'subflows' is of MPTCP; TCP has one connection over one path")
    if (wanted or 1) > 1 and paths < 2:
        raise ParameterError(f"parameter 'subflows': {wanted} take two paths, there is {paths}")
    return read_request(
        Request, p, deadline_s=p["deadline_s"] or (600.0 if p["seconds"] is None else p["seconds"] + 30)
    )


class DownloadConnection(MeasuredConnection):
    """``orders``: None where the kernel's own path manager has the connection; ``held_ms``: for how long the request was held, None where
    it was not to be."""

    def __init__(self, request: Request, output: Output) -> None:
        r = request
        timing = (r.connect_timeout_s, r.stall_s, r.sample_hz, r.read_pause_s)
        super().__init__(Terms(r, "download", *timing, r.options), r.kind, r.primary, r.bytes, r.seconds)
        self.request, self._output = request, output
        self.orders: SubflowOrders | None = None
        self.held_ms: float | None = None

    @property
    def expected_subflows(self) -> int:
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
                    self.orders.await_there(self.request.subflows or 1, HELD_S, stop.wait)
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

    def result(self) -> dict[str, Any] | None:
        """The figures, once the connection is closed; None where it never was one. The duration ends with the last byte or, when timed,
        with the time given, so that an outage at the end counts. Without either it ends with the connect; goodput is 0 without a byte."""
        connected, transfer = self.connected, self.down
        if connected is None:
            return None
        ended = transfer.over_ns or transfer.last_byte_ns or connected.connected_monotonic_ns
        duration_s = max(0.0, (ended - connected.started_monotonic_ns) / 1e9 - (self.held_ms or 0.0) / 1e3)
        first_byte_ms = None
        if transfer.first_byte_ns is not None and transfer.requested_ns is not None:
            first_byte_ms = (transfer.first_byte_ns - transfer.requested_ns) / 1e6
        totals = self.series.ordered()
        there = SenderSide(self.answer, totals)
        return {
            "bytes": transfer.received,
            "duration_s": duration_s,
            "goodput_bit_per_s": transfer.received * 8 / duration_s if duration_s > 0 else 0.0,
            "connect_ms": connected.connect_ms,
            "tls_ms": connected.tls_ms,
            "first_byte_ms": first_byte_ms,
            "fallback": self.kind == "mptcp" and self.series.fallback,
            "subflows": [
                self._subflow(index, total, share, there)
                for index, (total, share) in enumerate(zip(totals, shares(totals), strict=True))
            ],
            "sender": self.answer,
            "bytes_retrans": there.all_bytes_retrans,
            "held_ms": self.held_ms,
            "bytes_by_path": bytes_by_path((t.name.path, t.bytes, t.bytes_sent) for t in totals),
            **self._orders(),
        }

    def _subflow(self, index: int, total: SubflowTotal, share: float, there: SenderSide) -> dict[str, Any]:
        """``rtt_source``: whose median RTT it is. ``sender``: the kernel's at the server, the true one. ``receiver``: this end's estimate
        from the data's rhythm (tcpi_rcv_rtt), which a queue or a pause falsifies. ``handshake_rtt_ms``: one measurement, when the subflow
        was opened. ``server_address``: which of the server's it goes to. ``bytes_retrans``: what the sender sent again on it, None where it
        does not say, or not of which."""
        true_rtt = there.rtt_ms(total)
        rtt = true_rtt if true_rtt is not None else total.rtt_ms_median
        return {
            "subflow": total.subflow,
            "path": total.name.path,
            "operator": total.name.operator,
            "bytes": total.bytes,
            "share": share,
            "rtt_ms_median": rtt,
            "join_delay_ms": self._join_ms(self._came_ns(total)) if index else None,
            "rtt_source": None if rtt is None else "receiver" if true_rtt is None else "sender",
            "handshake_rtt_ms": total.handshake_rtt_ms,
            "server_address": total.remote,
            "bytes_retrans": there.bytes_retrans(total),
        }

    def _came_ns(self, total: SubflowTotal) -> int | None:
        """When it was there: by the kernel's word to its order, which is nearer than the first sample that shows it; of several over the
        same way that is of the first."""
        seen = total.established_ns
        for order in [] if self.orders is None else self.orders.subflows:
            if (order.path, order.remote) == (total.name.path, total.remote) and order.attempts:
                heard = order.came_ns
                return heard if seen is not None and heard is not None and abs(seen - heard) < _SAME_NS else seen
        return seen

    def _orders(self) -> dict[str, Any]:
        """The result's part: how many subflows were requested and how many there were, and each order; ms from the first one's
        handshake."""
        seen = sum(total.established_ns is not None for total in self.series.totals.values())
        ordered = [] if self.orders is None else self.orders.subflows
        rows = [
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
        ]
        return {
            "subflows_asked": self.request.subflows,
            "subflows_reached": sum(s.came_ns is not None for s in ordered) if ordered else seen,
            "subflow_orders": None if self.orders is None else rows,
        }

    def _since_ms(self, at_ns: int | None) -> float | None:
        connected = self.connected
        return None if at_ns is None or connected is None else (at_ns - connected.connected_monotonic_ns) / 1e6


RESULTS = (
    *FIGURES,
    Parameter("connect_ms", "float", "connection establishment", "ms"),
    Parameter("tls_ms", "float", "TLS's handshake; null without TLS", "ms"),
    Parameter("first_byte_ms", "float", "from the request sent to the first payload byte", "ms"),
    Parameter("fallback", "bool", "Multipath TCP that fell back to TCP"),
    Parameter("subflows", "list", "each subflow: path, bytes, share, RTT, delay of its join"),
    Parameter("bytes_retrans", "int", "sent again by the sender, all subflows; null: it did not tell", "B"),
    Parameter("subflows_asked", "int", "how many were requested; null: the kernel's path manager had the choice"),
    Parameter("subflows_reached", "int", "how many there were; of ordered ones those that were not taken back at once"),
    Parameter("held_ms", "float", "for how long the request was held until its subflows were there; not in duration_s", "ms"),
    Parameter("subflow_orders", "list", "each order: path, server's address, when ordered, when there, or why not"),
    Parameter("subflow_losses", "list", "subflows that the connection lost; the collector adds them"),
    SENDER,
    BYTES_BY_PATH,
)  # fmt: skip


class Download:
    """One transfer over one connection, with statistics of every subflow."""

    name = "download"
    version = 1
    parameters: tuple[Parameter, ...] = parameters_of(Request)
    results: tuple[Parameter, ...] = RESULTS

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        request = read(parameters)
        span = Span(request.deadline_s, stop)
        connection = DownloadConnection(request, output)
        addresses: dict[str, str] = {}
        control_path = None
        try:
            if request.whoami:
                with stop.interruptible():
                    addresses = whoami(request, request.carrying)
            connection.open(addresses, stop)
            control_path = None if connection.session is None else connection.session.path
            connection.connect(stop)
            connection.transfer(span.deadline_ns, stop, output)
            open_socket = None if connection.connected is None else connection.connected.socket
            # The congestion control is this end's, the receiver's; the sender's is in its answer.
            settings = environment(request, open_socket)
        except StoppedError:
            connection.failure, settings = STOPPED, environment(request)
        except sockets.UnsupportedError as error:
            raise MissingRequirementError(str(error)) from error
        finally:
            connection.close(stop)
        first = next(iter(connection.series.ordered()), None)
        further: dict[str, Any] = {
            "first": None if first is None else {"subflow": first.subflow, "path": first.name.path},
            "public_addresses": addresses,
            "control_path": control_path,
            "samples": connection.samples,
            "connection": connection.token,
        }
        if connection.connected is None and control_path is not None:
            further["sender"] = connection.answer
        settings |= {"sample_hz": request.sample_hz, **request.options.to_dict()}
        return Outcome(json.loads(json.dumps(connection.result())), connection.failure, settings, further)


EXPERIMENT = Download()
