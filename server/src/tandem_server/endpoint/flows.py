"""What became of one connection's subflows at the sender: series while it runs, a summary at its end."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tandem.mptcp_abi import TcpInfo
from tandem.schema.line_protocol import Point
from tandem.schema.record import Value
from tandem_server.endpoint.paths import PathPeer, name_subflows
from tandem_server.endpoint.sampler import Snapshot


@dataclass(frozen=True, slots=True)
class Labels:
    """The tags of one connection's records."""

    probe: str
    boot: str
    run: str
    kind: str
    path: str | None
    paths: Mapping[str, PathPeer]


@dataclass(slots=True)
class _Seen:
    remote: str | None
    tcp: TcpInfo
    rtts_ms: list[float] = field(default_factory=list)


class FlowAccount:
    """Takes the snapshots of one connection in order. Counters of subflows that closed stay at their last reading.

    ``head_bytes``: the response's head, which is acknowledged as the payload is, and is no payload.
    """

    def __init__(self, labels: Labels, congestion_control: str, head_bytes: int) -> None:
        self._labels, self._congestion_control, self._head_bytes = labels, congestion_control, head_bytes
        self._seen: dict[str, _Seen] = {}
        self._last: Snapshot | None = None
        self._last_alive: dict[str, TcpInfo] = {}
        self._was_multipath = False

    @property
    def acked_bytes(self) -> int | None:
        """Payload acknowledged by the peer so far; None before the first snapshot, or when the kernel does not tell."""
        if self._last is None or self._last.acked_bytes is None:
            return None
        return max(0, self._last.acked_bytes - self._head_bytes)

    def take(self, snapshot: Snapshot) -> list[Point]:
        """The records of this snapshot: one a subflow alive, one of the connection."""
        before, alive_before = self._last, self._last_alive
        acked_before = self.acked_bytes
        self._last = snapshot
        self._was_multipath = self._was_multipath or snapshot.multipath
        self._last_alive = {flow.id: flow.tcp for flow in snapshot.flows}
        for flow in snapshot.flows:
            seen = self._seen.setdefault(flow.id, _Seen(flow.remote, flow.tcp))
            seen.remote, seen.tcp = flow.remote or seen.remote, flow.tcp
            if flow.tcp.rtt_us is not None:
                seen.rtts_ms.append(flow.tcp.rtt_us / 1000)
        elapsed_s = (snapshot.monotonic_ns - before.monotonic_ns) / 1e9 if before else 0.0
        names = self._names()
        points = []
        for flow in snapshot.flows:
            fields = _subflow_fields(flow.tcp, alive_before.get(flow.id), elapsed_s)
            path = names[flow.id]
            peer = self._labels.paths.get(path) if path is not None else None
            tags = {"path": path, "operator": peer.operator if peer else None, "subflow": flow.id}
            points.append(self._point("subflow", tags, fields, snapshot))
        fields = {"subflows": len(snapshot.flows), "fallback": self.fallback}
        acked = self.acked_bytes
        if acked is not None:
            fields["bytes"] = acked
            if acked_before is not None and elapsed_s > 0:
                fields["goodput_bit_per_s"] = max(0, acked - acked_before) * 8 / elapsed_s
        points.append(
            self._point("connection", {"kind": self._labels.kind, "path": self._labels.path}, fields, snapshot)
        )
        return points

    @property
    def fallback(self) -> bool:
        """A connection of an MPTCP run that is, or became, plain TCP."""
        return self._labels.kind == "mptcp" and self._last is not None and not self._last.multipath

    def summary(self) -> dict[str, Any]:
        """The connection as DELETE of its session tells it (server/spec/endpoint-api.md)."""
        names = self._names()
        return {
            "fallback": self.fallback,
            "congestion_control": self._congestion_control,
            "bytes_acked": self.acked_bytes,
            "subflows": [
                {
                    "subflow": subflow,
                    "path": names[subflow],
                    "bytes_acked": seen.tcp.bytes_acked,
                    "bytes_retrans": seen.tcp.bytes_retrans,
                    "rtt_ms_median": statistics.median(seen.rtts_ms) if seen.rtts_ms else None,
                    "rtt_ms_p95": _quantile(seen.rtts_ms, 0.95),
                    "rtt_ms_min": None if seen.tcp.min_rtt_us is None else seen.tcp.min_rtt_us / 1000,
                }
                for subflow, seen in self._seen.items()
            ],
        }

    def _names(self) -> dict[str, str | None]:
        if self._labels.kind == "tcp":
            return dict.fromkeys(self._seen, self._labels.path)
        remotes = [(subflow, seen.remote) for subflow, seen in self._seen.items()]
        return name_subflows(self._labels.paths, self._labels.path, remotes)

    def _point(
        self, measurement: str, tags: Mapping[str, str | None], fields: Mapping[str, Value | None], at: Snapshot
    ) -> Point:
        own = {"probe": self._labels.probe, "boot": self._labels.boot, "run": self._labels.run, "end": "server"}
        kept = {k: v for k, v in tags.items() if v}
        told: dict[str, Value] = {k: v for k, v in fields.items() if v is not None}
        return Point(measurement, {**own, **kept}, {**told, "monotonic_ns": at.monotonic_ns}, at.utc_ns)


def _subflow_fields(tcp: TcpInfo, before: TcpInfo | None, elapsed_s: float) -> dict[str, Value | None]:
    goodput = None
    if before is not None and before.bytes_acked is not None and tcp.bytes_acked is not None and elapsed_s > 0:
        goodput = max(0, tcp.bytes_acked - before.bytes_acked) * 8 / elapsed_s
    return {
        "goodput_bit_per_s": goodput,
        "bytes_received": tcp.bytes_received,
        "bytes_sent": tcp.bytes_sent,
        "bytes_acked": tcp.bytes_acked,
        "bytes_retrans": tcp.bytes_retrans,
        "rtt_ms": _ms(tcp.rtt_us),
        "rtt_min_ms": _ms(tcp.min_rtt_us),
        "cwnd_segments": tcp.snd_cwnd_segments,
        "notsent_bytes": tcp.notsent_bytes,
        "delivery_rate_bit_per_s": None if tcp.delivery_rate is None else float(tcp.delivery_rate * 8),
        "retransmits_segments": tcp.total_retrans_segments,
    }


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000


def _quantile(values: list[float], share: float) -> float | None:
    """By the nearest rank; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
