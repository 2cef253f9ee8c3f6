"""The traceroute as an experiment: all paths at once, by each protocol; then what they have in common, by router and by autonomous system.
Systems are those of the user's table of ``prefix,number`` lines: nothing is looked up outside.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from tandem.experiment.base import Outcome, Output, Span, Stop, at_once, phase
from tandem.experiment.control import describe
from tandem.experiment.parameters import (
    CommonParameters,
    Parameter,
    ParameterError,
    ProbePath,
    parameter,
    parameters_of,
    read_request,
)
from tandem.experiment.results import INTERFACE_BYTES, InterfaceCounters, environment, share
from tandem.experiment.traceroute.tracing import Plan, Reply, Trace, trace
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure

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


def rows(trace: Trace, table: AsTable | None) -> list[dict[str, Any]]:
    """The hops for the result: each address with its AS (None without a table) and its times."""
    found = []
    for hop in trace.hops:
        by_address: dict[str, list[Reply]] = {}
        for reply in hop.replies:
            if reply is not None:
                by_address.setdefault(reply.address, []).append(reply)
        answered = [
            {
                "address": a,
                "as": table and table.of(a),
                "rtt_ms": [round(r.rtt_ms, 3) for r in replies],
                "kind": replies[0].kind,
            }
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
    traces: Sequence[tuple[str, Trace]], servers: dict[str, str], table: AsTable | None
) -> list[dict[str, Any]]:
    """Each pair of ``traces`` (path's name, trace); ``servers``: the address that each path traced."""
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
        if table is not None:
            own = {table.of(address) for address in servers.values()}
            systems = [{table.of(r) for r in routers} - {None} for routers in (a, b)]
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


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A traceroute over each of ``paths``, checked."""

    # fmt: off
    protocol: str = parameter("of the probes; TCP goes where UDP is dropped", default="both", choices=("udp", "tcp", "both"))
    udp_port: int = parameter("at the server, where nobody listens", "port", default=33434, minimum=1, maximum=65535)
    hops: int = parameter("at most", "hops", default=30, minimum=1, maximum=64)
    tries: int = parameter("probes for each hop", "probes", default=3, minimum=1, maximum=10)
    probe_timeout_s: float = parameter("for each probe", "s", default=1.0, minimum=0.05, maximum=10)
    silent_hops: int = parameter("in a row that end a trace", "hops", default=6, minimum=1, maximum=64)
    as_table: AsTable | None = parameter("file of prefix,AS lines, for comparing by autonomous system", file=True)
    deadline_s: float = parameter("the whole run", "s", default=600.0, minimum=1, maximum=7200)
    # fmt: on

    @property
    def protocols(self) -> tuple[str, ...]:
        """In order."""
        return ("udp", "tcp") if self.protocol == "both" else (self.protocol,)

    def plan(self, protocol: str) -> Plan:
        """Of one trace."""
        return Plan(protocol, self.hops, self.tries, self.probe_timeout_s, self.silent_hops)


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one; ParameterError when the table cannot be read."""
    file = parameters["as_table"]
    try:
        table = None if file is None else read_table(Path(file).read_bytes())
    except (OSError, TableError) as error:
        raise ParameterError(f"parameter 'as_table': {file}: {getattr(error, 'strerror', None) or error}") from error
    return read_request(Request, parameters, as_table=table)


class Traceroute:
    """The routers on each path to the server, and what the paths have in common."""

    name = "traceroute"
    version = 1
    parameters: tuple[Parameter, ...] = parameters_of(Request)
    phases = (("udp", "all paths by UDP"), ("tcp", "all paths by TCP"))
    results: tuple[Parameter, ...] = (
        Parameter("traces", "list", "each path and protocol: hops, how it ended"),
        Parameter("disjointness", "list", "each pair of paths and protocol: routers and systems in common"),
        Parameter("as_table", "object", "the table of AS used: sha256, prefixes; null without"),
        Parameter("duration_s", "float", "of the whole", "s"),
        Parameter("bytes_by_path", "object", "payload: none worth counting, 0"),
        INTERFACE_BYTES,
    )

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """Trace all paths by each protocol."""
        request = read(parameters)
        span, interfaces = Span(request.deadline_s, stop), InterfaceCounters(request.paths)
        table = request.as_table
        traces, disjointness = list[dict[str, Any]](), list[dict[str, Any]]()
        reached = False
        for number, protocol in enumerate(request.protocols, start=1):
            if span.over():
                break
            phase(output, protocol, number, len(request.protocols))
            found = _all_paths(request, protocol, span.over)
            servers = {name: address for name, (address, _) in found.items() if address is not None}
            for path in request.paths:
                address, one = found[path.name]
                head = {"path": path.name, "operator": path.operator, "protocol": protocol, "address": address}
                traces.append({**head, "ended": one.ended, "hops": rows(one, table)})
                reached = reached or any(r is not None for hop in one.hops for r in hop.replies)
            pairs = [(p.name, found[p.name][1]) for p in request.paths if p.name in servers]
            common = compare(pairs, servers, table)
            disjointness += [{"protocol": protocol, **row} for row in common]
        result = {
            "traces": traces,
            "disjointness": disjointness,
            "as_table": None if table is None else {"sha256": table.sha256, "prefixes": table.prefixes},
            "duration_s": span.duration_s,
            "bytes_by_path": {p.name: {"received": 0, "sent": 0} for p in request.paths},
            "interface_bytes_by_path": interfaces.by_path(),
        }
        silent = None if reached else Failure(reason="no hop answered over any path", retry=True)
        return Outcome(result, span.failure() or silent, environment(request))


def _all_paths(request: Request, protocol: str, over: Callable[[], bool]) -> dict[str, tuple[str | None, Trace]]:
    """By path: the server's address, None when it has none there, and the trace. MissingRequirementError."""
    found: dict[str, tuple[str | None, Trace]] = {}

    def one(path: ProbePath) -> None:
        port = request.udp_port if protocol == "udp" else request.measurement.port
        address = None
        try:
            address = sockets.resolve(request.measurement.host, port, path.interface)
            traced = trace(path.interface, address, request.plan(protocol), over)
        except OSError as error:  # no address; no such interface or no route, so that the socket could not be made
            traced = Trace(ended=describe(error))
        found[path.name] = None if address is None else address[0], traced

    at_once(request.paths, one)
    return found


EXPERIMENT = Traceroute()
