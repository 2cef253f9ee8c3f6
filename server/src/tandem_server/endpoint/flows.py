"""What became of one connection's subflows at the sender: read from the kernel, as series while it runs, a summary at its end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tandem import mptcp_abi as abi
from tandem.mptcp_abi import TcpInfo
from tandem.mptcp_abi.reader import Reader
from tandem.schema.line_protocol import Point
from tandem.schema.record import Value
from tandem.stream import Stream, TlsStream
from tandem_server.quantile import nearest_rank


@dataclass(frozen=True, slots=True)
class Flow:
    """One subflow now. ``id`` is unique within the connection; ``remote`` and ``port`` are the peer's as seen here, ``local`` is which of
    our addresses it came to."""

    id: str
    remote: str | None
    tcp: abi.TcpInfo
    port: int | None = None
    local: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One reading. ``multipath`` False for TCP and after fallback; then ``flows`` is the one connection, with id 1. ``acked_bytes``: of
    what was written; with TLS its payload in whole records, not what encrypting adds."""

    monotonic_ns: int
    utc_ns: int
    multipath: bool
    flows: tuple[Flow, ...]
    acked_bytes: int | None


class Sampler:
    """Reads one connected socket; use it from one thread. Costs 20 to 200 µs a reading."""

    def __init__(self, connection: Stream) -> None:
        self._stream, self._reader = connection, Reader(connection)
        peer = connection.getpeername()
        self._peer, self._port = _plain(peer[0]), int(peer[1])

    def read(self) -> Snapshot | None:
        """The statistics now; None when the connection has none any more (closed, reset)."""
        utc_ns = time.time_ns()
        try:
            sample = self._reader.read()
        except OSError:
            return None
        flows = tuple(map(_flow, sample.subflows))
        acked = sample.mptcp.bytes_acked if sample.mptcp is not None else flows[0].tcp.bytes_acked
        if sample.mptcp is None:
            flows = (Flow("1", self._peer, flows[0].tcp, self._port),)
        if acked is not None and isinstance(self._stream, TlsStream):
            acked = self._stream.payload_in(acked)
        return Snapshot(sample.monotonic_ns, utc_ns, sample.mptcp is not None and not sample.fallback, flows, acked)


def _flow(subflow: abi.SubflowSample) -> Flow:
    host, port = (None, None) if subflow.remote is None else (subflow.remote.host, subflow.remote.port)
    return Flow(subflow.id, host, subflow.tcp, port, None if subflow.local is None else subflow.local.host)


def _plain(host: str) -> str:
    """IPv4 addresses that a dual-stack socket shows mapped into IPv6, as IPv4."""
    return host.removeprefix("::ffff:") if host.startswith("::ffff:") and "." in host else host


@dataclass(frozen=True, slots=True)
class PathPeer:
    """One path as the session has it: the operator, and the public address (None when the probe could not find it out)."""

    operator: str | None
    address: str | None


def name_subflows(
    paths: Mapping[str, PathPeer], primary: str | None, remotes: Sequence[tuple[str, str | None]]
) -> dict[str, str | None]:
    """Path name, or None, for each subflow; ``remotes``: (subflow id, remote address) in the order of establishment.

    1. An address that belongs to exactly one path names it. 2. The first subflow is the primary path's. 3. When one path
    alone is left, and one unnamed address, they belong together: carriers change the public address between connections.
    """
    owners: dict[str, list[str]] = {}
    for name, peer in paths.items():
        if peer.address is not None:
            owners.setdefault(peer.address, []).append(name)
    named: dict[str, str | None] = {}
    for subflow, address in remotes:
        known = owners.get(address or "", [])
        named[subflow] = known[0] if len(known) == 1 else None
    if remotes and named[remotes[0][0]] is None:
        named[remotes[0][0]] = primary
    left = [name for name in paths if name not in named.values()]
    unnamed = [(subflow, address) for subflow, address in remotes if named[subflow] is None]
    if len(left) == 1 and unnamed and len({address for _, address in unnamed}) == 1:
        for subflow, _ in unnamed:
            named[subflow] = left[0]
    return named


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
    """Takes the snapshots of one connection in order. Counters of subflows that closed stay at their last reading."""

    def __init__(self, labels: Labels) -> None:
        self._labels, self._head_bytes = labels, 0
        self._seen: dict[str, _Seen] = {}
        self._last: Snapshot | None = None
        self._received_bytes: int | None = None
        self._last_alive: dict[str, TcpInfo] = {}
        self._was_multipath = False

    def head(self, size: int) -> None:
        """A response has begun, with a head of ``size`` bytes, which is acknowledged as the payload is, and is no payload."""
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
                    "rtt_ms_p95": nearest_rank(sorted(seen.rtts_ms), 0.95),
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
