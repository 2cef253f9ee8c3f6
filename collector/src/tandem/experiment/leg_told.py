"""What a measured connection (``legs.Leg``) tells in a result, of both its ends. Pure."""

from __future__ import annotations

from typing import Any

from tandem.experiment.legs import Leg
from tandem.mptcp.series import shares
from tandem.mptcp_abi.controllers import described


def told(leg: Leg) -> dict[str, Any]:
    """For the result, once the leg is closed."""
    totals = leg.series.ordered()
    return {
        "kind": leg.wanted.kind,
        "path": leg.wanted.path.name,
        "connect_ms": leg.connect_ms,
        "tls_ms": None if leg.connected is None else leg.connected.tls_ms,
        "bytes": leg.payload_bytes,
        "fallback": leg.wanted.kind == "mptcp" and leg.series.fallback,
        "congestion_control": _congestion_control(leg),
        "controller": _controller(leg),
        **_buffer_bytes(leg),
        "subflows": [
            {
                "subflow": t.subflow,
                "path": t.name.path,
                "bytes": t.bytes,
                "share": share,
                "rtt_ms_median": t.rtt_ms_median,
                "join_delay_ms": _join_ms(leg, t.established_ns) if index else None,
            }
            for index, (t, share) in enumerate(zip(totals, shares(totals), strict=True))
        ],
        "failure": leg.failure,
    }


def _congestion_control(leg: Leg) -> str | None:
    """The sender's, at whichever end that is."""
    if leg.terms.direction == "upload":
        return leg.own_control
    found = None if leg.sender is None else leg.sender.get("congestion_control")
    return found if isinstance(found, str) else None


def _controller(leg: Leg) -> dict[str, Any] | None:
    """What the sender's is: name, kind, object (``mptcp_abi.controllers``)."""
    if leg.terms.direction == "upload":
        return described(leg.own_control)
    found = None if leg.sender is None else leg.sender.get("controller")
    return found if isinstance(found, dict) else None


def _buffer_bytes(leg: Leg) -> dict[str, int | None]:
    """As the kernels count (twice what was asked): this end's when it had connected, the endpoint's when the session ended."""
    near, far = "receive_buffer_bytes", "send_buffer_bytes"
    if leg.terms.direction == "upload":
        near, far = far, near
    found = None if leg.sender is None else leg.sender.get(far)
    return {near: leg.own_buffer_bytes, far: found if isinstance(found, int) else None}


def _join_ms(leg: Leg, established_ns: int | None) -> float | None:
    if established_ns is None or leg.connected is None or leg.terms.sample_hz is None:
        return None  # seen once, at the end: when it joined was not watched
    return max(0.0, (established_ns - leg.connected.connected_monotonic_ns) / 1e6)
