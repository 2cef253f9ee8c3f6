"""What the loads of a run come to: the result's figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tandem.experiment.distribution import distribution
from tandem.experiment.pageload.carrier import Carried, by_path
from tandem.experiment.pageload.load import Load
from tandem.experiment.parameters import Parameter
from tandem.experiment.results import BYTES_BY_PATH, bytes_by_path
from tandem.mptcp.series import SubflowTotal

RESULTS = (
    Parameter("page_load_time_ms", "object", "by the browser, navigation to the load event's end: n, mean, quantiles", "ms"),
    Parameter("first_contentful_paint_ms", "object", "by the browser, likewise", "ms"),
    Parameter("dom_content_loaded_ms", "object", "by the browser, to the end of DOMContentLoaded, likewise", "ms"),
    Parameter("object_load_time_ms", "object", "without a browser, first connection to the last object's last byte, likewise", "ms"),
    Parameter("connect_ms", "object", "establishment of each measured connection, likewise", "ms"),
    Parameter("loads", "list", "a row of each load"),
    Parameter("loads_failed", "int", "loads that did not reach their end", "1"),
    Parameter("objects", "int", "that came, of all loads", "1"),
    Parameter("objects_failed", "int", "that did not", "1"),
    Parameter("objects_missed", "int", "asked for and not in the stored page: answered 404", "1"),
    Parameter("objects_near", "int", "answered by the stored query nearest to the asked one", "1"),
    Parameter("refused_elsewhere", "int", "connections to hosts that the page does not have, not let through", "1"),
    Parameter("connections", "int", "measured connections", "1"),
    Parameter("bytes", "int", "received over them before the loads' ends and their closing, heads and TLS included", "B"),
    Parameter("fallback", "bool", "Multipath TCP that fell back to TCP, in any of the connections"),
    Parameter("subflows", "list", "each path: bytes over all connections, share"),
    Parameter("browser", "str", "the browser's own name and version; null without one"),
    BYTES_BY_PATH,
)  # fmt: skip


@dataclass(slots=True)
class Loaded:
    """One load with what carried it. ``shares``: of the bytes by path at the load's end. ``sender``: the server's answer when the
    session was closed, None when it gave none. ``session``: where the server was asked for its capture of it, else None."""

    load: Load
    carried: list[Carried]
    shares: dict[str, float] | None
    elsewhere: int
    sender: dict[str, Any] | None
    tls: bool
    session: str | None = None


@dataclass(slots=True)
class Run:
    """All that was loaded so far."""

    loads: list[Loaded] = field(default_factory=list)
    browser: str | None = None


def shares(carried: list[Carried]) -> dict[str, float] | None:
    """Each path's part of the bytes received; None when the kernel told nothing."""
    found = by_path(carried)
    whole = sum(found.values())
    return {path: round(count / whole, 4) for path, count in found.items()} if whole else None


def row(loaded: Loaded) -> dict[str, Any]:
    """Of the list ``loads``."""
    load = loaded.load
    connections = len(loaded.carried)
    own = {
        "page_load_time_ms": load.load_ms,
        "first_contentful_paint_ms": load.first_paint_ms,
        "dom_content_loaded_ms": load.content_loaded_ms,
    }
    return {
        "page": load.page,
        "by": load.by,
        **(own if load.by == "browser" else {"object_load_time_ms": load.load_ms}),
        "objects": load.objects,
        "objects_failed": load.failed,
        "objects_missed": load.missed,
        "objects_near": _sum(loaded.sender, "near"),
        "bytes": sum(c.received for c in loaded.carried),
        "connections": connections,
        "connect_ms": round(loaded.carried[0].connected.connect_ms, 3) if connections else None,
        "tls": loaded.tls,
        "shares": loaded.shares,
        **({} if loaded.session is None else {"session": loaded.session, "sender_addresses": _named(loaded.sender)}),
        "failure": load.failure,
    }


def _named(sender: dict[str, Any] | None) -> dict[str, str]:
    """By address the path of which the server took it to be; an address of two is left out."""
    told = sender.get("connections") if sender is not None else None
    found: dict[str, set[object]] = {}
    for connection in told if isinstance(told, list) else []:
        subflows = connection.get("subflows") if isinstance(connection, dict) else None
        for row in subflows if isinstance(subflows, list) else []:
            remote = row.get("remote") if isinstance(row, dict) else None
            if isinstance(remote, dict) and isinstance(remote.get("address"), str):
                found.setdefault(remote["address"], set()).add(row.get("path"))
    one = {address: paths.pop() for address, paths in found.items() if len(paths) == 1}
    return {address: path for address, path in one.items() if isinstance(path, str)}


def result(run: Run, kind: str) -> dict[str, Any] | None:
    """The figures; None when no load brought an object."""
    loads = run.loads
    if not any(one.load.objects for one in loads):
        return None
    by_browser = [one.load for one in loads if one.load.by == "browser" and one.load.failure is None]
    by_graph = [one.load for one in loads if one.load.by == "graph" and one.load.failure is None]
    carried = [c for one in loads for c in one.carried]
    totals = [total for c in carried for total in c.series.totals.values()]
    return {
        "page_load_time_ms": _of(by_browser, "load_ms"),
        "first_contentful_paint_ms": _of(by_browser, "first_paint_ms"),
        "dom_content_loaded_ms": _of(by_browser, "content_loaded_ms"),
        "object_load_time_ms": _of(by_graph, "load_ms"),
        "connect_ms": distribution([c.connected.connect_ms for c in carried]),
        "loads": [row(one) for one in loads],
        "loads_failed": sum(one.load.failure is not None for one in loads),
        "objects": sum(one.load.objects for one in loads),
        "objects_failed": sum(one.load.failed for one in loads),
        "objects_missed": sum(one.load.missed for one in loads),
        "objects_near": sum(_sum(one.sender, "near") or 0 for one in loads),
        "refused_elsewhere": sum(one.elsewhere for one in loads),
        "connections": len(carried),
        "bytes": sum(c.received for c in carried),
        "fallback": kind == "mptcp" and any(c.series.fallback for c in carried),
        "subflows": _subflows(totals),
        "browser": run.browser,
        "bytes_by_path": bytes_by_path((t.name.path, t.bytes, t.bytes_sent) for t in totals),
    }


def _of(loads: Sequence[Load], figure: str) -> dict[str, Any] | None:
    return distribution([v for one in loads if (v := getattr(one, figure)) is not None]) if loads else None


def _subflows(totals: Sequence[SubflowTotal]) -> list[dict[str, Any]]:
    carried: dict[str | None, int] = {}
    for total in totals:
        carried[total.name.path] = carried.get(total.name.path, 0) + total.bytes
    whole = sum(carried.values())
    return [{"path": p, "bytes": count, "share": count / whole if whole else 0.0} for p, count in carried.items()]


def _sum(sender: dict[str, Any] | None, key: str) -> int | None:
    """Over the server's connections; None when it did not tell."""
    told = sender.get("connections") if sender is not None else None
    if not isinstance(told, list):
        return None
    counts = [c.get(key) for c in told if isinstance(c, dict)]
    return sum(c for c in counts if isinstance(c, int) and not isinstance(c, bool))
