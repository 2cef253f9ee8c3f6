"""What two traces have in common, by router and by autonomous system. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from tandem.experiment.distribution import share
from tandem.experiment.traceroute.tracing import Trace

AsOf = Callable[[str], int | None]


def rows(trace: Trace, as_of: AsOf) -> list[dict[str, Any]]:
    """The hops as the result tells them: each address with its AS and its times."""
    told = []
    for hop in trace.hops:
        addresses = list(dict.fromkeys(r.address for r in hop.replies if r is not None))
        told.append(
            {
                "ttl": hop.ttl,
                "unanswered": sum(r is None for r in hop.replies),
                "routers": [
                    {
                        "address": address,
                        "as": as_of(address),
                        "rtt_ms": [round(r.rtt_ms, 3) for r in hop.replies if r is not None and r.address == address],
                        "kind": next(r.kind for r in hop.replies if r is not None and r.address == address),
                    }
                    for address in addresses
                ],
            }
        )
    return told


def routers(trace: Trace, server: str) -> list[str]:
    """The addresses of routers on the way, nearest first, without the server's."""
    seen = (r.address for hop in trace.hops for r in hop.replies if r is not None)
    return [address for address in dict.fromkeys(seen) if address != server]


def comparable(address: str) -> bool:
    """Public: a private address in two networks is two routers."""
    ip = ipaddress.ip_address(address)
    return ip.is_global and not ip.is_multicast


def compare(
    traces: Sequence[tuple[str, Trace]], servers: dict[str, str], as_of: AsOf, known: bool
) -> list[dict[str, Any]]:
    """Each pair of ``traces`` (path's name, trace); ``servers``: the address that each path traced. ``known``: there is a table of AS."""
    found = []
    for (one, first), (other, second) in combinations(traces, 2):
        a = [r for r in routers(first, servers[one]) if comparable(r)]
        b = [r for r in routers(second, servers[other]) if comparable(r)]
        both = [r for r in a if r in b]
        row: dict[str, Any] = {
            "paths": [one, other],
            "routers": [len(a), len(b)],
            "shared": both,
            "disjoint_share": _disjoint(len(both), len(set(a) | set(b))),
        }
        if known:
            own = {as_of(address) for address in servers.values()}
            systems = [{as_of(r) for r in routers} - {None} for routers in (a, b)]
            # both must end in the server's own: that is no point against them
            left, right = (s - own for s in systems)
            row["systems"] = [sorted(s for s in one_side if s is not None) for one_side in systems]
            row["systems_shared"] = sorted(s for s in left & right if s is not None)
            row["systems_disjoint_share"] = _disjoint(len(left & right), len(left | right))
        found.append(row)
    return found


def _disjoint(both: int, either: int) -> float | None:
    common = share(both, either)
    return None if common is None else 1 - common
