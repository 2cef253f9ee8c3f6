"""The traceroute as an experiment: all paths at once, by each protocol; then what they have in common, by router and by AS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from tandem.experiment.results import INTERFACE_BYTES, InterfaceCounters, environment
from tandem.experiment.traceroute.comparing import AsTable, TableError, compare, read_table, rows
from tandem.experiment.traceroute.tracing import Plan, Trace, trace
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure


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
        as_of = table.of if table is not None else _unknown
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
                traces.append({**head, "ended": one.ended, "hops": rows(one, as_of)})
                reached = reached or any(r is not None for hop in one.hops for r in hop.replies)
            pairs = [(p.name, found[p.name][1]) for p in request.paths if p.name in servers]
            common = compare(pairs, servers, as_of, table is not None)
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
    """By path: the server's address, None when it has none there, and the trace. EnvironmentLackError."""
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


def _unknown(_address: str) -> int | None:
    return None


EXPERIMENT = Traceroute()
