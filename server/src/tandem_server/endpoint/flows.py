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
    """The tags of one connection's records. ``kind`` ``any``: the connection's own kind is tagged. ``path``: the first subflow's,
    None where only its address can tell."""

    probe: str
    boot: str
    run: str
    kind: str
    path: str | None
    paths: Mapping[str, PathPeer]


@dataclass(slots=True)
class _Seen:
    remote: str | None
    port: int | None
    tcp: TcpInfo
    local: str | None = None
    rtts_ms: list[float] = field(default_factory=list)


class FlowAccount:
    """Takes the snapshots of one connection in order. Counters of subflows that closed stay at their last reading.

    ``head_bytes``: the response's head, which is acknowledged as the payload is, and is no payload.
    """

    def __init__(self, labels: Labels, head_bytes: int = 0) -> None:
        self._labels, self._head_bytes = labels, head_bytes
        self._seen: dict[str, _Seen] = {}
        self._last: Snapshot | None = None
        self._received_bytes: int | None = None
        self._last_alive: dict[str, TcpInfo] = {}
        self._was_multipath = False

    def head(self, size: int) -> None:
        """A further response has begun, with a head of ``size`` bytes."""
        self._head_bytes += size

    @property
    def acked_bytes(self) -> int | None:
        """Payload acknowledged by the peer so far; None before the first snapshot, or when the kernel does not tell."""
        if self._last is None or self._last.acked_bytes is None:
            return None
        return max(0, self._last.acked_bytes - self._head_bytes)

    def take(self, snapshot: Snapshot, received_bytes: int | None = None) -> list[Point]:
        """The records of this snapshot: one a subflow alive, one of the connection. ``received_bytes``: the payload of an upload so
        far, which is then what the connection carried; None for a download, which carried what was acknowledged."""
        before, alive_before = self._last, self._last_alive
        carried_before = self._carried_bytes
        self._last, self._received_bytes = snapshot, received_bytes
        self._was_multipath = self._was_multipath or snapshot.multipath
        self._last_alive = {flow.id: flow.tcp for flow in snapshot.flows}
        for flow in snapshot.flows:
            seen = self._seen.setdefault(flow.id, _Seen(flow.remote, flow.port, flow.tcp))
            seen.remote, seen.port, seen.tcp = flow.remote or seen.remote, flow.port or seen.port, flow.tcp
            seen.local = flow.local or seen.local
            if flow.tcp.rtt_us is not None:
                seen.rtts_ms.append(flow.tcp.rtt_us / 1000)
        elapsed_s = (snapshot.monotonic_ns - before.monotonic_ns) / 1e9 if before else 0.0
        names = self._names()
        points = []
        for flow in snapshot.flows:
            fields = _subflow_fields(flow.tcp, alive_before.get(flow.id), elapsed_s, received_bytes is not None)
            path = names[flow.id]
            peer = self._labels.paths.get(path) if path is not None else None
            tags = {"path": path, "operator": peer.operator if peer else None, "subflow": flow.id}
            points.append(self._point("subflow", tags, fields, snapshot))
        fields = {"subflows": len(snapshot.flows), "fallback": self.fallback}
        carried = self._carried_bytes
        if carried is not None:
            fields["bytes"] = carried
            if carried_before is not None and elapsed_s > 0:
                fields["goodput_bit_per_s"] = max(0, carried - carried_before) * 8 / elapsed_s
        points.append(self._point("connection", {"kind": self._kind, "path": self._labels.path}, fields, snapshot))
        return points

    @property
    def _carried_bytes(self) -> int | None:
        return self.acked_bytes if self._received_bytes is None else self._received_bytes

    @property
    def _kind(self) -> str:
        return self._labels.kind if self._labels.kind != "any" else "mptcp" if self._was_multipath else "tcp"

    @property
    def fallback(self) -> bool:
        """A connection of an MPTCP run that is, or became, plain TCP; in a session of any kind, one that became it."""
        return self._kind == "mptcp" and self._last is not None and not self._last.multipath

    def summary(self) -> dict[str, Any]:
        """The connection as DELETE of its session tells it (docs/reference/endpoint-api.md)."""
        names = self._names()
        return {
            "fallback": self.fallback,
            "multipath": self._last is not None and self._last.multipath,
            "bytes_acked": self.acked_bytes,
            "subflows": [
                {
                    "subflow": subflow,
                    "path": names[subflow],
                    "remote": {"address": seen.remote, "port": seen.port} if seen.remote and seen.port else None,
                    "local": seen.local,
                    "bytes_acked": seen.tcp.bytes_acked,
                    "bytes_received": seen.tcp.bytes_received,
                    "bytes_retrans": seen.tcp.bytes_retrans,
                    "rtt_ms_median": statistics.median(seen.rtts_ms) if seen.rtts_ms else None,
                    "rtt_ms_p95": _quantile(seen.rtts_ms, 0.95),
                    "rtt_ms_min": None if seen.tcp.min_rtt_us is None else seen.tcp.min_rtt_us / 1000,
                }
                for subflow, seen in self._seen.items()
            ],
        }

    def _names(self) -> dict[str, str | None]:
        if self._kind == "tcp" and self._labels.path is not None:
            return dict.fromkeys(self._seen, self._labels.path)
        remotes = [(subflow, seen.remote) for subflow, seen in self._seen.items()]
        return name_subflows(self._labels.paths, self._labels.path, remotes)

    def _point(
        self, measurement: str, tags: Mapping[str, str | None], fields: Mapping[str, Value | None], at: Snapshot
    ) -> Point:
        own = {"probe": self._labels.probe, "boot": self._labels.boot, "run": self._labels.run, "end": "server"}
        kept = {k: v for k, v in tags.items() if v}
        content: dict[str, Value] = {k: v for k, v in fields.items() if v is not None}
        return Point(measurement, {**own, **kept}, {**content, "monotonic_ns": at.monotonic_ns}, at.utc_ns)


def _subflow_fields(tcp: TcpInfo, before: TcpInfo | None, elapsed_s: float, upload: bool) -> dict[str, Value | None]:
    goodput = None
    now, then = (None if t is None else t.bytes_received if upload else t.bytes_acked for t in (tcp, before))
    if now is not None and then is not None and elapsed_s > 0:
        goodput = max(0, now - then) * 8 / elapsed_s
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
