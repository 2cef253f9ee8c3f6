"""From samples of one connection to ``sample`` lines, with the fields of ``connection`` and ``subflow`` records, and to totals by
subflow. Pure: samples in, plain values out. A subflow that closed keeps its last counters, which the kernel forgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tandem.mptcp_abi import SubflowSample
from tandem.mptcp_abi.reader import ConnectionSample


class PathName(NamedTuple):
    """A path as records name it."""

    path: str | None
    operator: str | None


End = Literal["receiver", "sender"]
NameOf = Callable[[SubflowSample], PathName]
"""Which path a subflow runs over, told from its addresses."""


@dataclass(slots=True)
class SubflowTotal:
    """A subflow over the whole connection, alive or closed.

    ``bytes``: received (or, at a sender, acknowledged) when last seen; ``bytes_sent``: as the kernel counts, None where it does
    not. ``established_ns``: CLOCK_MONOTONIC of the first sample
    that showed it established, None if none did. ``handshake_rtt_ms``: the kernel's RTT at that sample, which at a receiver is
    the handshake's. ``rtt_ms``: every sample's RTT (at a receiver the kernel's receiver-side estimate). ``local_port``, ``remote``: our
    end's port, the peer's host.
    """

    subflow: str
    name: PathName
    bytes: int = 0
    bytes_sent: int | None = None
    established_ns: int | None = None
    handshake_rtt_ms: float | None = None
    rtt_ms: list[float] = field(default_factory=list)
    local_port: int | None = None
    remote: str | None = None

    @property
    def rtt_ms_median(self) -> float | None:
        return _median(self.rtt_ms)


class Series:
    """Takes the samples of one connection in order. ``end``: which counter is the goodput's, ours as receiver or as sender."""

    def __init__(self, name_of: NameOf, end: End = "receiver") -> None:
        self._name_of = name_of
        self._end = end
        self._previous_ns: int | None = None
        self._previous_payload = 0
        self.totals: dict[str, SubflowTotal] = {}
        self.fallback = False
        self.token: int | None = None
        """By which the kernel knows the connection; None for plain TCP."""

    def add(self, sample: ConnectionSample, payload_bytes: int) -> dict[str, Any]:
        """``sample`` as the content of a line: ``monotonic_ns``; ``connection`` with the fields of ``schema.metrics.CONNECTION``;
        ``subflows`` with those of ``schema.metrics.SUBFLOW``, absent ones left out. ``payload_bytes`` is what the application has read (or
        written) so far."""
        elapsed = None if self._previous_ns is None else (sample.monotonic_ns - self._previous_ns) / 1e9
        self.fallback = self.fallback or sample.fallback
        if sample.mptcp is not None:
            self.token = sample.mptcp.token
        rows = [self._subflow(s, sample.monotonic_ns, elapsed) for s in sample.subflows]
        goodput = _rate(payload_bytes - self._previous_payload, elapsed)
        connection = {
            "bytes": payload_bytes,
            "subflows": sample.alive,
            "fallback": self.fallback,
            "goodput_bit_per_s": goodput,
        }
        self._previous_ns, self._previous_payload = sample.monotonic_ns, payload_bytes
        return {"monotonic_ns": sample.monotonic_ns, "connection": _present(connection), "subflows": rows}

    def note(self, sample: ConnectionSample) -> None:
        """Only see which subflows are established, between two rows."""
        for subflow in sample.subflows:
            self._total(subflow, sample.monotonic_ns)

    def _total(self, sample: SubflowSample, now: int) -> SubflowTotal:
        total = self.totals.get(sample.id)
        if total is None:
            total = self.totals[sample.id] = SubflowTotal(sample.id, self._name_of(sample))
        elif total.name.path is None:
            total.name = self._name_of(sample)  # an address may not have been known while the subflow was connecting
        if sample.local is not None and sample.local.port:
            total.local_port = sample.local.port
        if sample.remote is not None:
            total.remote = sample.remote.host
        if total.established_ns is None and sample.established:
            total.established_ns = now
            total.handshake_rtt_ms = _ms(sample.tcp.rtt_us)
        return total

    def _subflow(self, sample: SubflowSample, now: int, elapsed: float | None) -> dict[str, Any]:
        tcp = sample.tcp
        total = self._total(sample, now)
        count = tcp.bytes_received if self._end == "receiver" else tcp.bytes_acked
        gained = None if count is None else max(0, count - total.bytes)
        total.bytes = max(total.bytes, count or 0)
        if tcp.bytes_sent is not None:
            total.bytes_sent = max(total.bytes_sent or 0, tcp.bytes_sent)
        rtt = _ms(tcp.rcv_rtt_us if self._end == "receiver" else tcp.rtt_us)
        if rtt is not None:
            total.rtt_ms.append(rtt)
        fields = {
            "goodput_bit_per_s": _rate(gained, elapsed),
            "bytes_received": tcp.bytes_received,
            "bytes_sent": tcp.bytes_sent,
            "bytes_acked": tcp.bytes_acked,
            "bytes_retrans": tcp.bytes_retrans,
            "rtt_ms": _ms(tcp.rtt_us),
            "rtt_min_ms": _ms(tcp.min_rtt_us),
            "rcv_rtt_ms": _ms(tcp.rcv_rtt_us),
            "cwnd_segments": tcp.snd_cwnd_segments,
            "notsent_bytes": tcp.notsent_bytes,
            "delivery_rate_bit_per_s": None if tcp.delivery_rate is None else tcp.delivery_rate * 8.0,
            "retransmits_segments": tcp.total_retrans_segments,
            "rcv_ooo_packets": tcp.rcv_ooo_packets,
        }
        return {"subflow": sample.id, "path": total.name.path, "operator": total.name.operator, **_present(fields)}

    def ordered(self) -> list[SubflowTotal]:
        """All subflows in the order in which they were established; those that never were come last."""
        return sorted(
            self.totals.values(), key=lambda t: (t.established_ns is None, t.established_ns or 0, _number(t.subflow))
        )


def shares(totals: Sequence[SubflowTotal]) -> list[float]:
    """Each subflow's part of all bytes, 0 to 1; all 0 when nothing was carried."""
    whole = sum(t.bytes for t in totals)
    return [t.bytes / whole if whole else 0.0 for t in totals]


def _median(values: Sequence[float]) -> float | None:
    # As of the module statistics, whose loading (fractions, decimal, random) takes longer than a whole run's samples.
    if not values:
        return None
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _number(subflow: str) -> int:
    return int(subflow) if subflow.isdigit() else 0


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000


def _rate(gained: int | None, elapsed: float | None) -> float | None:
    return None if gained is None or not elapsed else gained * 8 / elapsed


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
