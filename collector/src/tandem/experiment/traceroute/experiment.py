"""The traceroute as an experiment: all paths at once, by each protocol; then what they have in common, by router and by AS."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Any

from tandem.experiment.base import STOPPED, EnvironmentLackError, Outcome, Output, Stop, phase
from tandem.experiment.common_parameters import COMMON, CommonParameters, ProbePath, read_common
from tandem.experiment.control import describe
from tandem.experiment.distribution import share
from tandem.experiment.environment import environment
from tandem.experiment.interfaces import interface_bytes
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.traceroute import as_table
from tandem.experiment.traceroute.tracing import Plan, Trace, trace
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure

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


PARAMETERS = (
    *COMMON,
    Parameter("protocol", "str", "of the probes; TCP goes where UDP is dropped", default="both", choices=("udp", "tcp", "both")),
    Parameter("udp_port", "int", "at the server, where nobody listens", "port", default=33434, minimum=1, maximum=65535),
    Parameter("hops", "int", "at most", "hops", default=30, minimum=1, maximum=64),
    Parameter("tries", "int", "probes for each hop", "probes", default=3, minimum=1, maximum=10),
    Parameter("probe_timeout_s", "float", "for each probe", "s", default=1.0, minimum=0.05, maximum=10),
    Parameter("silent_hops", "int", "in a row that end a trace", "hops", default=6, minimum=1, maximum=64),
    Parameter("as_table", "str", "file of prefix,AS lines, for comparing by autonomous system", file=True),
    Parameter("deadline_s", "float", "the whole run", "s", default=600.0, minimum=1, maximum=7200),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A traceroute over each of ``paths``, checked."""

    protocol: str
    udp_port: int
    hops: int
    tries: int
    probe_timeout_s: float
    silent_hops: int
    as_table: as_table.AsTable | None
    deadline_s: float

    @property
    def protocols(self) -> tuple[str, ...]:
        """In order."""
        return ("udp", "tcp") if self.protocol == "both" else (self.protocol,)


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one; ParameterError when the table cannot be read."""
    common = read_common(parameters)
    shared = {f.name: getattr(common, f.name) for f in fields(CommonParameters)}
    own = {f.name: parameters[f.name] for f in fields(Request) if f.name not in shared}
    file = own["as_table"]
    if file is not None:
        try:
            own["as_table"] = as_table.read(Path(file).read_bytes())
        except OSError as error:
            raise ParameterError(f"parameter 'as_table': {file}: {error.strerror}") from error
        except as_table.TableError as error:
            raise ParameterError(f"parameter 'as_table': {file}: {error}") from error
    return Request(**shared, **own)


class Traceroute:
    """See ``tandem.experiment.base.Experiment``."""

    name = "traceroute"
    version = 1
    parameters: tuple[Parameter, ...] = PARAMETERS
    phases = (
        ("udp", "all paths by UDP"),
        ("tcp", "all paths by TCP"),
    )
    results: tuple[Parameter, ...] = (
        Parameter("traces", "list", "each path and protocol: hops, how it ended"),
        Parameter("disjointness", "list", "each pair of paths and protocol: routers and systems in common"),
        Parameter("as_table", "object", "the table of AS used: sha256, prefixes; null without"),
        Parameter("duration_s", "float", "of the whole", "s"),
        Parameter("bytes_by_path", "object", "payload: none worth counting, 0"),
        Parameter("interface_bytes_by_path", "object", "all that the interface counted, headers and other traffic too"),
    )

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """See ``tandem.experiment.base.Experiment``."""
        request = read(parameters)
        began_ns = time.monotonic_ns()
        counted = {p.name: interface_bytes(p.interface) for p in request.paths}

        def over() -> bool:
            return stop.requested or time.monotonic_ns() - began_ns > request.deadline_s * 1e9

        table = request.as_table
        as_of = table.of if table is not None else _unknown
        traces, disjointness = list[dict[str, Any]](), list[dict[str, Any]]()
        reached = False
        for number, protocol in enumerate(request.protocols, start=1):
            if over():
                break
            phase(output, protocol, number, len(request.protocols))
            found = _all_paths(request, protocol, over)
            named = ((p.name, found[p.name][0]) for p in request.paths)
            servers = {name: address for name, address in named if address is not None}
            for path in request.paths:
                address, one = found[path.name]
                head = {"path": path.name, "operator": path.operator, "protocol": protocol, "address": address}
                traces.append({**head, "ended": one.ended, "hops": rows(one, as_of)})
                reached = reached or any(r is not None for hop in one.hops for r in hop.replies)
            pairs = [(name, found[name][1]) for name in servers]
            common = compare(pairs, servers, as_of, table is not None)
            disjointness += [{"protocol": protocol, **row} for row in common]
        result = {
            "traces": traces,
            "disjointness": disjointness,
            "as_table": None if table is None else {"sha256": table.sha256, "prefixes": table.prefixes},
            "duration_s": (time.monotonic_ns() - began_ns) / 1e9,
            "bytes_by_path": {p.name: {"received": 0, "sent": 0} for p in request.paths},
            "interface_bytes_by_path": {
                p.name: interface_bytes(p.interface, since=counted[p.name]) for p in request.paths
            },
        }
        failure = None
        if stop.requested:
            failure = STOPPED
        elif over():
            failure = Failure(reason="deadline passed", retry=True)
        elif not reached:
            failure = Failure(reason="no hop answered over any path", retry=True)
        return Outcome(result, failure, environment(request))


def _all_paths(request: Request, protocol: str, over: Callable[[], bool]) -> dict[str, tuple[str | None, Trace]]:
    """By path: the server's address, None when it has none there, and the trace. A lack of this machine is raised."""
    found: dict[str, tuple[str | None, Trace]] = {}
    lacks = list[EnvironmentLackError]()
    timing = (request.hops, request.tries, request.probe_timeout_s, request.silent_hops)

    def one(path: ProbePath) -> None:
        port = request.udp_port if protocol == "udp" else request.measurement.port
        try:
            address = sockets.resolve(request.measurement.host, port, path.interface)
        except OSError as error:
            found[path.name] = (None, Trace(ended=describe(error)))
            return
        try:
            found[path.name] = (address[0], trace(path.interface, address, Plan(protocol, *timing), over))
        except EnvironmentLackError as error:
            lacks.append(error)
        except OSError as error:  # no such interface, no route: the socket could not be made
            found[path.name] = (address[0], Trace(ended=describe(error)))

    threads = [threading.Thread(target=one, args=(path,)) for path in request.paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if lacks:
        raise lacks[0]
    return found


def _unknown(_address: str) -> int | None:
    return None


EXPERIMENT = Traceroute()
