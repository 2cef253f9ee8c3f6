"""What a download comes to: the result's figures, those of the sender's subflows beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tandem.experiment.control import mapping, objects, real, whole
from tandem.experiment.download.connection import DownloadConnection
from tandem.experiment.parameters import Parameter
from tandem.experiment.results import BYTES_BY_PATH, FIGURES, SENDER, bytes_by_path
from tandem.mptcp import sockets
from tandem.mptcp.series import SubflowTotal, shares


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
        """Bytes that the sender sent again on it."""
        row = self.of(total)
        return whole(mapping(row).get("bytes_retrans"))

    @property
    def all_bytes_retrans(self) -> int | None:
        """On all subflows; None when it does not say of each."""
        counts = [whole(row.get("bytes_retrans")) for row in self._rows]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None


RESULTS = (
    *FIGURES,
    Parameter("connect_ms", "float", "connection establishment", "ms"),
    Parameter("tls_ms", "float", "TLS's handshake; null without TLS", "ms"),
    Parameter("first_byte_ms", "float", "from the request sent to the first payload byte", "ms"),
    Parameter("fallback", "bool", "Multipath TCP that fell back to TCP"),
    Parameter("subflows", "list", "each subflow: path, bytes, share, RTT, delay of its join"),
    Parameter("bytes_retrans", "int", "sent again by the sender, all subflows; null: it did not tell", "B"),
    Parameter("subflows_asked", "int", "how many were asked for; null: the kernel's path manager had the choice"),
    Parameter("subflows_reached", "int", "how many there were; of ordered ones those that were not taken back at once"),
    Parameter("held_ms", "float", "for how long the request was held until its subflows were there; not in duration_s", "ms"),
    Parameter("subflow_orders", "list", "each order: path, server's address, when ordered, when there, or why not"),
    Parameter("subflow_losses", "list", "subflows that the connection lost; the collector adds them"),
    SENDER,
    BYTES_BY_PATH,
)  # fmt: skip


_SAME_NS = 1_000_000_000
"""A sample shows a subflow a tenth of a second after it came, where it came late; an order is repeated after a second at the least."""


def result(connection: DownloadConnection) -> dict[str, Any] | None:
    """The figures, once the connection is closed; None where it never was one. The duration ends with the last byte or, when timed, with
    the time given, so that an outage at the end counts. Without either it ends with the connect; goodput is 0 without a byte."""
    connected, transfer = connection.connected, connection.down
    if connected is None:
        return None
    ended = transfer.over_ns or transfer.last_byte_ns or connected.connected_monotonic_ns
    duration_s = max(0.0, (ended - connected.started_monotonic_ns) / 1e9 - (connection.held_ms or 0.0) / 1e3)
    first_byte_ms = None
    if transfer.first_byte_ns is not None and transfer.requested_ns is not None:
        first_byte_ms = (transfer.first_byte_ns - transfer.requested_ns) / 1e6
    totals = connection.series.ordered()
    there = SenderSide(connection.answer, totals)
    return {
        "bytes": transfer.received,
        "duration_s": duration_s,
        "goodput_bit_per_s": transfer.received * 8 / duration_s if duration_s > 0 else 0.0,
        "connect_ms": connected.connect_ms,
        "tls_ms": connected.tls_ms,
        "first_byte_ms": first_byte_ms,
        "fallback": connection.wanted.kind == "mptcp" and connection.series.fallback,
        "subflows": [
            _subflow(total, share, None if index == 0 else _came(total, connection), connected, there)
            for index, (total, share) in enumerate(zip(totals, shares(totals), strict=True))
        ],
        "sender": connection.answer,
        "bytes_retrans": there.all_bytes_retrans,
        "held_ms": connection.held_ms,
        "bytes_by_path": bytes_by_path((t.name.path, t.bytes, t.bytes_sent) for t in totals),
        **connection.report_orders(),
    }


def _subflow(
    total: SubflowTotal, share: float, came_ns: int | None, connected: sockets.Connected, there: SenderSide
) -> dict[str, Any]:
    """``rtt_source``: whose median RTT it is. ``sender``: the kernel's at the server, the true one. ``receiver``: this end's estimate from
    the data's rhythm (tcpi_rcv_rtt), which a queue or a pause falsifies. ``handshake_rtt_ms``: one measurement, when the subflow was
    opened. ``server_address``: which of the server's it goes to. ``bytes_retrans``: what the sender sent again on it, None where it does
    not say, or not of which."""
    true_rtt = there.rtt_ms(total)
    rtt = true_rtt if true_rtt is not None else total.rtt_ms_median
    return {
        "subflow": total.subflow,
        "path": total.name.path,
        "operator": total.name.operator,
        "bytes": total.bytes,
        "share": share,
        "rtt_ms_median": rtt,
        "join_delay_ms": None if came_ns is None else max(0.0, (came_ns - connected.connected_monotonic_ns) / 1e6),
        "rtt_source": None if rtt is None else "receiver" if true_rtt is None else "sender",
        "handshake_rtt_ms": total.handshake_rtt_ms,
        "server_address": total.remote,
        "bytes_retrans": there.bytes_retrans(total),
    }


def _came(total: SubflowTotal, connection: DownloadConnection) -> int | None:
    """When it was there: by the kernel's word to its order, which is nearer than the first sample that shows it; of several over the same
    way that is of the first."""
    seen, heard = total.established_ns, connection.came.get((total.name.path, total.remote))
    return heard if seen is not None and heard is not None and abs(seen - heard) < _SAME_NS else seen
