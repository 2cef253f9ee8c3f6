"""From what was seen to a verdict, and where Multipath TCP was lost as far as that can be known. Pure.

RFC 8684: §3.1 (MP_CAPABLE), §3.2 (MP_JOIN), §3.7 (fallback). The names of counters are the kernel's (``MPTcpExt`` in
/proc/net/netstat); they count the whole network namespace.
"""

from __future__ import annotations

from dataclasses import dataclass, field

REPEATED_S = 0.9
"""A connect that took longer repeated its SYN, the first time after a second: lost for its options or by chance, or this end was late."""
DROPPED = "MPCapableSYNTXDrop"
"""Of Linux 6.12 and later: connections made without MP_CAPABLE after SYNs with it had no answer."""
_TELLING_MS = 5.0
_ADD_UP = 1.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """``verdict``: ``native``; ``stripped`` (the options went missing); ``dropped`` (segments with them get no answer, without them
    they do); ``fallback`` (lost with the first data, after the handshake); ``reset``; ``unreachable`` (not even TCP); ``untested``.
    ``where``: ``syn``, ``syn-ack``, ``syn or syn-ack``, ``data``, None when nothing was lost or nothing can be known."""

    verdict: str
    where: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class Primary:
    """A connection by Multipath TCP that began on the path. None: did not come to that, or the server does not say.

    ``tcp``: plain TCP works there. ``connected``: the connect succeeded, after ``connect_s``. ``handshake``, ``data``: it is still
    Multipath TCP after the handshake, after the payload. ``server``: what the server saw of the handshake: ``native``,
    ``fallback``, ``none``. ``alive``: the path's own subflow outlived the payload. ``between``: something else answered for the server.
    """

    tcp: bool
    connected: bool
    connect_s: float | None = None
    handshake: bool | None = None
    data: bool | None = None
    server: str | None = None
    syns: tuple[int, ...] = ()
    alive: bool | None = None
    between: bool | None = None
    error: str | None = None
    counters: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Join:
    """A subflow that should have joined over the path a connection that began on ``over``. ``seen``: the kernel began it;
    ``repeated``: its SYN was sent again; ``established``; ``bytes_received`` over it; ``alive`` at the end."""

    over: str | None
    seen: bool = False
    repeated: bool = False
    established: bool = False
    alive: bool = False
    bytes_received: int = 0
    error: str | None = None
    counters: dict[str, int] = field(default_factory=dict)


def judge_primary(p: Primary) -> Verdict:
    if not p.connected:
        if not p.tcp:
            return Verdict("unreachable", None, f"neither TCP nor Multipath TCP connects: {p.error}")
        return Verdict("dropped", "syn or syn-ack", f"TCP connects, Multipath TCP does not: {p.error}")
    if not p.handshake:
        return _lost_in_the_handshake(p)
    if p.data is None:
        return Verdict("untested", None, f"the handshake was native, no payload came: {p.error}")
    if not p.data:
        return Verdict("fallback", "data", "native handshake, then TCP: " + _why_data(p.counters))
    if p.alive is False:
        return Verdict(
            "reset", "data", "native handshake, then this path's subflow was reset: " + _why_data(p.counters)
        )
    return Verdict("native", None, "Multipath TCP from the handshake to the last byte")


def dropped(counters: dict[str, int], connect_s: float | None) -> bool:
    """SYNs with MP_CAPABLE had no answer: by the kernel's own count; where it has none, by a connect that took as long as that."""
    known = counters.get(DROPPED)
    return known > 0 if known is not None else connect_s is not None and connect_s > REPEATED_S


def _lost_in_the_handshake(p: Primary) -> Verdict:
    if p.counters.get("MPCapableSYNTX") == 0:
        return Verdict(
            "untested", None, "this machine sent no MP_CAPABLE: net.mptcp.enabled, or its blackhole timeout is running"
        )
    if dropped(p.counters, p.connect_s):
        return Verdict("dropped", "syn or syn-ack", "SYNs with MP_CAPABLE got no answer, one without did")
    if p.between:
        return Verdict("stripped", "syn", "something between here and the server answers for it, and speaks plain TCP")
    if 0 in p.syns:
        return Verdict("stripped", "syn", "the server got no SYN with MP_CAPABLE while the connection was made")
    if p.syns or p.server in ("fallback", "native"):
        # another peer's SYN at each of the tries would look the same
        return Verdict("stripped", "syn-ack", "the server got MP_CAPABLE, its answer came without")
    return Verdict("stripped", "syn or syn-ack", "the answer came without MP_CAPABLE")


def judge_join(j: Join) -> Verdict:
    if j.over is None:
        return Verdict("untested", None, "no other path carries Multipath TCP that it could join")
    if j.error is not None and not j.seen:
        return Verdict("untested", None, f"the connection over {j.over} failed: {j.error}")
    if j.established:
        if not j.alive:
            return Verdict("reset", "data", "joined, then reset: " + _why_data(j.counters))
        if j.bytes_received == 0:
            return Verdict("native", None, "joined; the server sent nothing over it")
        return Verdict("native", None, "joined and carried data")
    if j.counters.get("MPJoinSynAckHMacFailure"):
        return Verdict("stripped", "syn-ack", "the answer to MP_JOIN was not the server's own: its HMAC is wrong")
    if j.repeated:
        return Verdict("dropped", "syn or syn-ack", "SYNs with MP_JOIN got no answer")
    if not j.seen and not j.counters.get("MPJoinSynTx"):
        return Verdict(
            "untested",
            None,
            "this kernel began no subflow over it; hint: an endpoint for its address (ip mptcp endpoint)",
        )
    return Verdict("stripped", "syn or syn-ack", "the answer came without MP_JOIN, or as a reset")


def _why_data(counters: dict[str, int]) -> str:
    """A data fallback's reason by the counters, in words."""
    said = [words for names, words in _REASONS if any(counters.get(name) for name in names)]
    return ", ".join(said) or "no counter says why"


_REASONS = (
    (("DataCsumErr",), "a DSS checksum was wrong: something changed the payload"),
    (
        ("MPCapableDataFallback", "DssFallback", "DSSCorruptionFallback"),
        "data came without DSS or with one that does not fit",
    ),
    (("DSSCorruptionReset", "DSSNotMatching"), "a DSS does not fit the data"),
    (("InfiniteMapRx",), "the server fell back (infinite mapping)"),
    (("MPFailRx",), "the server told of a wrong checksum (MP_FAIL)"),
    (("MPRstRx",), "the server, or one that plays it, reset it (MP_TCPRST)"),
)


def between(here_ms: float | None, there_ms: float | None, exchange_ms: float | None) -> bool | None:
    """Whether something ends the TCP connections of the two sides and joins them. ``here_ms``, ``there_ms``: the handshake's
    round-trip time as each end had it; ``exchange_ms``: request to answer. End to end all three are alike; with a proxy the two
    handshakes are of different stretches and add up to the exchange. None when it cannot be known: below 5 ms, where all is noise, with
    a figure missing, or with handshakes alike and a slow exchange, which a slow server gives as well as a proxy half-way."""
    if here_ms is None or there_ms is None or exchange_ms is None or exchange_ms < _TELLING_MS:
        return None
    if (here_ms + there_ms) / exchange_ms >= _ADD_UP:
        return False
    return True if max(here_ms, there_ms) >= _ADD_UP * min(here_ms, there_ms) else None
