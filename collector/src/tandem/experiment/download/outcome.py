"""What a download comes to: the result's figures and the environment it was measured in."""

from __future__ import annotations

import socket
from typing import Any

from tandem.experiment.download.request import Request
from tandem.experiment.environment import environment as machine_and_connection
from tandem.experiment.parameters import Parameter
from tandem.experiment.results import BYTES_BY_PATH, FIGURES, SENDER, bytes_by_path
from tandem.experiment.transfer import Transfer
from tandem.mptcp import sockets
from tandem.mptcp.series import Series, SubflowTotal, shares
from tandem.schema.manifest import RunResult, SubflowResult

RESULTS = (
    *FIGURES,
    Parameter("connect_ms", "float", "connection establishment", "ms"),
    Parameter("first_byte_ms", "float", "from the request sent to the first payload byte", "ms"),
    Parameter("fallback", "bool", "Multipath TCP that fell back to TCP"),
    Parameter("subflows", "list", "each subflow: path, bytes, share, RTT, delay of its join"),
    Parameter("subflow_losses", "list", "subflows that the connection lost; the collector adds them"),
    SENDER,
    BYTES_BY_PATH,
)


class DownloadSubflow(SubflowResult):
    """Beside the schema's: ``rtt_source`` says whose median RTT it is. ``sender``: the kernel's at the server, the true one.
    ``receiver``: this end's estimate from the data's rhythm (tcpi_rcv_rtt), which a queue or a pause falsifies.
    ``handshake_rtt_ms``: one measurement, when the subflow was opened."""

    rtt_source: str | None
    handshake_rtt_ms: float | None


class DownloadResult(RunResult):
    """Beside the schema's: ``sender`` is the server's answer when the session was closed, None when it gave none."""

    sender: dict[str, Any] | None
    bytes_by_path: dict[str, dict[str, int | None]]


def result(
    request: Request, connected: sockets.Connected, transfer: Transfer, series: Series, sender: dict[str, Any] | None
) -> DownloadResult:
    """The result's figures. The duration ends with the last byte or, when timed, with the time asked for, so that an outage at the
    end counts. Without either it ends with the connect; goodput is 0 without a byte."""
    ended = transfer.over_ns or transfer.last_byte_ns or connected.connected_monotonic_ns
    duration_s = (ended - connected.started_monotonic_ns) / 1e9
    first_byte_ms = None
    if transfer.first_byte_ns is not None and transfer.requested_ns is not None:
        first_byte_ms = (transfer.first_byte_ns - transfer.requested_ns) / 1e6
    totals = series.ordered()
    rows = [
        _subflow(total, share, index, connected, sender)
        for index, (total, share) in enumerate(zip(totals, shares(totals), strict=True))
    ]
    return DownloadResult(
        bytes=transfer.received,
        duration_s=duration_s,
        goodput_bit_per_s=transfer.received * 8 / duration_s if duration_s > 0 else 0.0,
        connect_ms=connected.connect_ms,
        first_byte_ms=first_byte_ms,
        fallback=request.kind == "mptcp" and series.fallback,
        subflows=list(rows),
        sender=sender,
        bytes_by_path=bytes_by_path((t.name.path, t.bytes, t.bytes_sent) for t in totals),
    )


def _subflow(
    total: SubflowTotal, share: float, index: int, connected: sockets.Connected, sender: dict[str, Any] | None
) -> DownloadSubflow:
    join_ms = None
    if index > 0 and total.established_ns is not None:
        join_ms = max(0.0, (total.established_ns - connected.connected_monotonic_ns) / 1e6)
    true_rtt = _sender_rtt(sender, total.name.path)
    rtt = true_rtt if true_rtt is not None else total.rtt_ms_median
    return DownloadSubflow(
        subflow=total.subflow,
        path=total.name.path,
        operator=total.name.operator,
        bytes=total.bytes,
        share=share,
        rtt_ms_median=rtt,
        join_delay_ms=join_ms,
        rtt_source=None if rtt is None else "receiver" if true_rtt is None else "sender",
        handshake_rtt_ms=total.handshake_rtt_ms,
    )


def _sender_rtt(sender: dict[str, Any] | None, path: str | None) -> float | None:
    """The sender's median RTT over ``path``, of the subflow that carried most there. The answer comes from outside."""
    if path is None or sender is None:
        return None
    best: tuple[float, float] | None = None
    for connection in _objects(sender.get("connections")):
        for subflow in _objects(connection.get("subflows")):
            rtt, carried = subflow.get("rtt_ms_median"), subflow.get("bytes_acked")
            if subflow.get("path") == path and isinstance(rtt, int | float) and isinstance(carried, int | float):
                best = max(best, (carried, float(rtt))) if best else (carried, float(rtt))
    return best[1] if best else None


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def environment(request: Request, connection: socket.socket | None) -> dict[str, Any]:
    """As every experiment's, and how this one was sampled and buffered. The congestion control is this end's, the receiver's; the
    sender's is in its answer."""
    found = machine_and_connection(request, connection)
    found["sample_hz"] = request.sample_hz
    if connection is not None:
        found["receive_buffer_asked_bytes"] = request.receive_buffer_bytes
    return found
