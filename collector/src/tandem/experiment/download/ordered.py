"""A download with a number of subflows: what its socket and its orders take, and what is told of them."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from tandem.experiment.base import Output, Stop
from tandem.experiment.control import Session
from tandem.experiment.download.request import Request
from tandem.experiment.server_addresses import further_addresses
from tandem.mptcp import sockets
from tandem.mptcp.series import Series
from tandem.mptcp.subflow_scheduler import SubflowOrders

HELD_S = 5.0
"""For a request that waits for subflows. The endpoint waits for the rest of a head for longer."""
_BEGINNING = 4
"""Bytes of a request: "GET "."""


def orders_of(request: Request, session: Session) -> SubflowOrders | None:
    """To be made before the socket; None where the kernel's own path manager has the connection. sockets.UnsupportedError."""
    if request.subflows is None:
        return None
    further = further_addresses(session.answer)
    return SubflowOrders({p.name: p.interface for p in request.carrying}, request.addresses_each, further)


def options_of(request: Request, session: Session) -> sockets.Options:
    """Subflows of both families take a socket of IPv6, also where the primary path has IPv4."""
    mixed = request.kind == "mptcp" and any(sockets.only6(p.interface) for p in request.carrying)
    if request.addresses_each > 1:
        mixed = mixed or any(":" in address for address in further_addresses(session.answer))
    both = mixed and sockets.multipath6()
    return request.options.here(sends=False, both_families=both, by_orders=request.subflows is not None)


def begin(orders: SubflowOrders, connected: sockets.Connected, request: Request, output: Output) -> None:
    """Order from now on. The line tells the collector to leave this connection's subflows alone."""
    orders.begin(
        connected.socket, request.primary.name, lambda token: output.line("ordering", connection=f"{token:08x}")
    )


def held(
    orders: SubflowOrders | None, connected: sockets.Connected, head: bytes, wanted: int, stop: Stop
) -> tuple[bytes, float]:
    """Send the beginning of the request ``head``, which lets the kernel order further subflows (it takes an acknowledged byte of
    Multipath TCP), and wait until ``wanted`` are there, ``HELD_S`` at most. The rest of the request, and how long it was held in ms.
    What fails fails again when the rest is sent."""
    begun_ns = time.monotonic_ns()
    with contextlib.suppress(OSError):
        connected.stream.sendall(head[:_BEGINNING])
        if orders is not None:
            orders.await_there(wanted, HELD_S, stop)
    return head[_BEGINNING:], (time.monotonic_ns() - begun_ns) / 1e6


def came(orders: SubflowOrders | None) -> dict[tuple[str | None, str | None], int]:
    """When each ordered subflow was there, as the kernel told; by path and the server's address."""
    subflows = [] if orders is None else orders.subflows
    return {(s.path, s.remote): s.came_ns for s in subflows if s.attempts and s.came_ns is not None}


def told(
    request: Request, orders: SubflowOrders | None, series: Series, connected: sockets.Connected
) -> dict[str, Any]:
    """The result's part: how many were requested and how many there were, and each order."""
    seen = sum(total.established_ns is not None for total in series.totals.values())
    return {
        "subflows_asked": request.subflows,
        "subflows_reached": sum(s.came_ns is not None for s in orders.subflows) if orders and orders.subflows else seen,
        "subflow_orders": None
        if orders is None
        else [
            {
                "path": subflow.path,
                "server_address": subflow.remote,
                "ordered_ms": _since(connected, subflow.ordered_ns),
                "established_ms": _since(connected, subflow.came_ns),
                "attempts": subflow.attempts,
                "why_not": subflow.why_not,
            }
            for subflow in orders.subflows
            if subflow.attempts or subflow.came_ns is None
        ],
    }


def _since(connected: sockets.Connected, at_ns: int | None) -> float | None:
    """Milliseconds from the first subflow's handshake on."""
    return None if at_ns is None else (at_ns - connected.connected_monotonic_ns) / 1e6
