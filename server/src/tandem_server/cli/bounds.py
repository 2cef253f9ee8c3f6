"""``[limits]`` of server.toml: what anyone may take of the server, and what the parts make of it."""

from __future__ import annotations

import logging
import resource
from collections.abc import Mapping
from dataclasses import dataclass

from tandem_server.endpoint.sessions import Limits, Share
from tandem_server.http.connections import ConnectionLimits
from tandem_server.http.rates import ProbeRates, RateShare

_LOG = logging.getLogger("tandem.serve")
DATABASE_WAIT_S = 30.0
"""So long a process waits for the database's first start to make its account."""
_FURTHER_DESCRIPTORS = 128
"""The registry's files, pipes, the database's connections."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bytes are payload; ``_s`` seconds. ``connections…``: of the measurement listener, so many with a session (in all, of one probe) and
    as many without (in all, of one address); ``https_…``: of gateway and control channel,
    each process its own, ``strangers`` being those that have shown no good token yet. ``probe_…_per_minute``: of each probe, at each of the
    two; bytes as sent. ``probe_document_bytes_per_day``: of each probe's manifests at the one, results at the other, as stored.
    ``probe_series_per_hour``: that each probe may begin (at each process of the gateway).
    ``new_connections_per_address``, ``failures_per_address`` (requests without a good token): a minute.
    Of the gateway, all its processes together: ``requests_at_once``, and ``bytes_in_flight`` held of their bodies."""

    session_bytes: int = 2_000_000_000
    sessions_per_probe: int = 8
    probe_bytes_per_day: int = 200_000_000_000
    session_s: float = 3600.0
    session_idle_s: float = 120.0
    stall_s: float = 30.0
    connections: int = 256
    connections_per_probe: int = 128
    connections_per_address: int = 128
    connections_per_session: int = 4
    page_connections_per_session: int = 48
    requests_at_once: int = 2048
    bytes_in_flight: int = 67_108_864
    clock_ahead_s: float = 600.0
    https_connections: int = 4096
    https_connections_per_probe: int = 64
    https_strangers: int = 256
    https_strangers_per_address: int = 64
    new_connections_per_address: int = 600
    failures_per_address: int = 30
    head_s: float = 10.0
    body_s: float = 60.0
    probe_requests_per_minute: int = 3_000
    probe_lines_per_minute: int = 1_200_000
    probe_sent_bytes_per_minute: int = 1_000_000_000
    probe_document_bytes_per_day: int = 200_000_000
    probe_series_per_hour: int = 20_000


def connection_limits(bounds: Bounds) -> ConnectionLimits:
    """Of the HTTPS listeners."""
    return ConnectionLimits(
        unauthenticated=bounds.https_strangers,
        unauthenticated_per_address=bounds.https_strangers_per_address,
        authenticated=bounds.https_connections,
        authenticated_per_probe=bounds.https_connections_per_probe,
        new_per_minute=bounds.new_connections_per_address,
        failures_per_minute=bounds.failures_per_address,
        head_s=bounds.head_s,
        body_s=bounds.body_s,
    )


def measurement_bounds(bounds: Bounds) -> ConnectionLimits:
    """Of the measurement listeners. New ones are not counted: all kits of an operator may come from one address."""
    return ConnectionLimits(
        unauthenticated=bounds.connections,
        unauthenticated_per_address=bounds.connections_per_address,
        authenticated=bounds.connections,
        authenticated_per_probe=bounds.connections_per_probe,
        new_per_minute=10**6,
    )


def session_limits(bounds: Bounds) -> Limits:
    """Of the endpoint's sessions."""
    return Limits(
        session_bytes=bounds.session_bytes,
        sessions_per_probe=bounds.sessions_per_probe,
        probe_bytes_per_day=bounds.probe_bytes_per_day,
        session_s=bounds.session_s,
        idle_s=bounds.session_idle_s,
        stall_s=bounds.stall_s,
        connections_per_session=bounds.connections_per_session,
        page_connections_per_session=bounds.page_connections_per_session,
        head_s=bounds.head_s,
    )


def probe_rates(bounds: Bounds, shares: Mapping[str, Share]) -> ProbeRates:
    """Everybody's, and those of the probes that have their own."""
    everybody = RateShare(
        bounds.probe_requests_per_minute, bounds.probe_lines_per_minute, bounds.probe_sent_bytes_per_minute
    )
    own = {
        name: RateShare(share.requests_per_minute, share.lines_per_minute, share.sent_bytes_per_minute)
        for name, share in shares.items()
    }
    return ProbeRates(everybody, own)


def enough_descriptors(connections: int) -> None:
    """Raise this process's limit of file descriptors as far as needed and allowed; say so when that is too little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _FURTHER_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    now = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, hard))
    except (OSError, ValueError):  # a service's filter forbids it: what the unit gave holds
        now = soft
    if now < wanted:
        _LOG.warning(
            "%d file descriptors allowed, %d connections configured; hint: LimitNOFILE=%d, or lower [limits] https_connections",
            now, connections, wanted,
        )  # fmt: skip
