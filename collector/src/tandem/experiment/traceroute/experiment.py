"""The traceroute as an experiment: all paths at once, by each protocol; then what they have in common."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tandem.experiment.base import STOPPED, EnvironmentLackError, Outcome, Output, Stop, phase
from tandem.experiment.common_parameters import ProbePath
from tandem.experiment.control import describe
from tandem.experiment.environment import environment
from tandem.experiment.interfaces import interface_bytes
from tandem.experiment.parameters import Parameter
from tandem.experiment.traceroute.comparing import compare, rows
from tandem.experiment.traceroute.request import PARAMETERS, Request, read
from tandem.experiment.traceroute.tracing import Plan, Trace, trace
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure


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
