"""What traces say: hops for the result, and what two paths have in common, by router and by autonomous system. Systems are those of the
user's table of ``prefix,number`` lines: nothing is looked up outside. Pure.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tandem.experiment.results import share
from tandem.experiment.traceroute.tracing import Reply, Trace

AsOf = Callable[[str], int | None]
"""From an address to the number of its autonomous system."""
_SPLIT = re.compile(r"[,\s|]+")
_MOST = 4_294_967_295


class TableError(ValueError):
    """A line that cannot be read; names it and the fix."""


@dataclass(frozen=True, slots=True)
class AsTable:
    """``by_length``: per version and prefix length, the network's number → AS; the longest match counts."""

    by_length: dict[tuple[int, int], dict[int, int]]
    sha256: str
    prefixes: int

    def of(self, address: str) -> int | None:
        """The AS of ``address``; None when no prefix holds it."""
        ip = ipaddress.ip_address(address)
        bits, value = ip.max_prefixlen, int(ip)
        for version, length in sorted(self.by_length, key=lambda k: -k[1]):
            found = self.by_length[version, length].get(value >> (bits - length)) if version == ip.version else None
            if found is not None:
                return found
        return None


def read_table(raw: bytes) -> AsTable:
    """From lines ``192.0.2.0/24,64500`` (comma, blank or tab; ``AS`` before the number may be; ``#`` begins a comment)."""
    by_length: dict[tuple[int, int], dict[int, int]] = {}
    prefixes = 0
    for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        parts = _SPLIT.split(text)
        try:
            network = ipaddress.ip_network(parts[0], strict=False)
            system = int(parts[1].upper().removeprefix("AS"))
        except (ValueError, IndexError) as error:
            raise TableError(f"line {number}: {text[:60]!r} is no prefix,AS; hint: as in 192.0.2.0/24,64500") from error
        if not 0 < system <= _MOST:
            raise TableError(f"line {number}: AS {system}; hint: 1 to {_MOST}")
        value = int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
        by_length.setdefault((network.version, network.prefixlen), {})[value] = system
        prefixes += 1
    return AsTable(by_length, hashlib.sha256(raw).hexdigest(), prefixes)


def rows(trace: Trace, as_of: AsOf) -> list[dict[str, Any]]:
    """The hops for the result: each address with its AS and its times."""
    found = []
    for hop in trace.hops:
        by_address: dict[str, list[Reply]] = {}
        for reply in hop.replies:
            if reply is not None:
                by_address.setdefault(reply.address, []).append(reply)
        answered = [
            {"address": a, "as": as_of(a), "rtt_ms": [round(r.rtt_ms, 3) for r in replies], "kind": replies[0].kind}
            for a, replies in by_address.items()
        ]
        found.append({"ttl": hop.ttl, "unanswered": hop.replies.count(None), "routers": answered})
    return found


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
