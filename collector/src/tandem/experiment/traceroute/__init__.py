"""The traceroute as an experiment: all paths at once, by each protocol; then what they have in common, by router and by autonomous system.
Systems are those of the user's table of ``prefix,number`` lines: nothing is looked up outside.
"""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import re
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from tandem.experiment.base import MissingRequirementError, Outcome, Output, Span, Stop, at_once, phase
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
from tandem.mptcp import kernels, sockets
from tandem.mptcp_abi import decode_address
from tandem.schema.manifest import Failure

# ---------------------------------------------------------------------------------------------------------------------
# Trace one path by UDP or TCP: segments whose time to live ends on the way, and who says so. Needs no privilege.
#
# Who says so is in the kernel's error queue (``struct sock_extended_err``, recvmsg(2) with MSG_ERRQUEUE). All probes
# of a trace have the same addresses and ports, so that routers that share load by them (ECMP) show one way. One
# probe is under way at a time.


IP_RECVERR, IPV6_RECVERR = 11, 25
_ERROR = struct.Struct("=IBBBBII")
_ICMP, _ICMP6 = 2, 3
_EXPIRED = {(_ICMP, 11), (_ICMP6, 3)}
_PORT = {(_ICMP, 3, 3), (_ICMP6, 1, 4)}


@dataclass(frozen=True, slots=True)
class IcmpError:
    """``kind``: ``expired`` (a router on the way), ``port`` (the host itself: nobody listens), ``unreachable N`` (a router refuses;
    the ICMP code). ``offender``: who sent it."""

    offender: str
    kind: str


def read_error(ancillary: Sequence[tuple[int, int, bytes]]) -> IcmpError | None:
    """The ICMP error among the ancillary data; None when there is none (an error of this machine's own)."""
    levels = ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR))
    for level, kind, content in ancillary:
        if (level, kind) not in levels or len(content) < _ERROR.size:
            continue
        _, origin, icmp, code, _, _, _ = _ERROR.unpack_from(content)
        offender = decode_address(content[_ERROR.size :])
        if origin not in (_ICMP, _ICMP6) or offender is None:
            continue
        port = "port" if (origin, icmp, code) in _PORT else f"unreachable {code}"
        return IcmpError(offender.host, "expired" if (origin, icmp) in _EXPIRED else port)
    return None


_IP_TTL = 2
_SYNCNT = 7
_LINGER_RESET = struct.pack("ii", 1, 0)
_MAGIC = b"tandem traceroute"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer to a probe: from whom, after how long, and ``kind`` as ``IcmpError`` or ``answer`` (the server's own)."""

    address: str
    rtt_ms: float
    kind: str


@dataclass(slots=True)
class Hop:
    """What came of the probes with one time to live; None for each that stayed unanswered."""

    ttl: int
    replies: list[Reply | None] = field(default_factory=list)


@dataclass(slots=True)
class Trace:
    """``ended``: ``reached``, ``unreachable`` (a router refuses), ``silent`` (too many hops without a word), ``hops`` (too many),
    ``stopped``, or the path's failure in words."""

    hops: list[Hop] = field(default_factory=list)
    ended: str = "hops"


@dataclass(frozen=True, slots=True)
class Plan:
    """``protocol``: ``udp`` or ``tcp``; ``tries`` probes a hop, each waited for ``timeout_s``; ``silent`` hops end a trace."""

    protocol: str
    hops: int
    tries: int
    timeout_s: float
    silent: int


def trace(interface: str, address: tuple[str, int], plan: Plan, stopped: Callable[[], bool]) -> Trace:
    """Over ``interface`` to ``address``. Failures of the path are in ``ended``; MissingRequirementError when the kernel forbids it."""
    found = Trace()
    probe = _Udp(interface, address) if plan.protocol == "udp" else _Tcp(interface, address)
    silent = 0
    try:
        for ttl in range(1, plan.hops + 1):
            hop = Hop(ttl)
            found.hops.append(hop)
            for number in range(plan.tries):
                if stopped():
                    found.ended = "stopped"
                    return found
                hop.replies.append(probe.send(ttl, number, plan.timeout_s))
            kinds = {r.kind for r in hop.replies if r is not None}
            if kinds & {"answer", "port"}:
                found.ended = "reached"
                return found
            if any(kind.startswith("unreachable") for kind in kinds):
                found.ended = "unreachable"
                return found
            silent = 0 if kinds else silent + 1
            if silent >= plan.silent:
                found.ended = "silent"
                return found
    except OSError as error:
        if error.errno == errno.EPERM:
            raise MissingRequirementError(
                "SO_BINDTODEVICE is not permitted; hint: a kernel from 5.7, or the capability CAP_NET_RAW"
            ) from error
        found.ended = (error.strerror or str(error)).lower()
    finally:
        probe.close()
    return found


def _prepared(kind: socket.SocketKind, interface: str, host: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    stream = kind == socket.SOCK_STREAM
    made = kernels.here().open_socket(family, multipath=False) if stream else socket.socket(family, kind)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
        if ":" in host:
            made.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
        else:
            made.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def _live_for(made: socket.socket, host: str, ttl: int) -> None:
    if ":" in host:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, ttl)
    else:
        made.setsockopt(socket.IPPROTO_IP, _IP_TTL, ttl)


def _queued(made: socket.socket) -> tuple[bytes, IcmpError | None] | None:
    """The next of the error queue: what of the probe's payload the router quoted, and the error; None when the queue is empty."""
    try:
        quoted, ancillary, _, _ = made.recvmsg(512, 512, socket.MSG_ERRQUEUE)
    except BlockingIOError:
        return None
    return quoted, read_error(ancillary)


class _Udp:
    """One socket for the whole trace; each probe's payload says which it is, as far as routers quote it."""

    def __init__(self, interface: str, address: tuple[str, int]) -> None:
        self._host = address[0]
        self._made = _prepared(socket.SOCK_DGRAM, interface, address[0])
        try:
            self._made.connect(address)
        except OSError:
            self._made.close()
            raise

    def close(self) -> None:
        self._made.close()

    def send(self, ttl: int, number: int, timeout_s: float) -> Reply | None:
        while _queued(self._made) is not None:
            pass  # answers to earlier probes that came too late
        payload = _MAGIC + bytes([ttl, number])
        _live_for(self._made, self._host, ttl)
        begun = time.monotonic_ns()
        try:
            self._made.send(payload)
        except OSError as error:
            if error.errno != errno.ECONNREFUSED:  # that is an earlier probe's
                raise
            self._made.send(payload)
        ends = begun + int(timeout_s * 1e9)
        while (left := ends - time.monotonic_ns()) > 0:
            ready = select.select([self._made], [], [self._made], left / 1e9)
            now = time.monotonic_ns()
            if not any(ready):
                break
            while (one := _queued(self._made)) is not None:
                quoted, error_ = one
                ours = not quoted.startswith(_MAGIC) or quoted[: len(payload)] == payload
                if error_ is not None and ours:
                    return Reply(error_.offender, (now - begun) / 1e6, error_.kind)
            try:
                self._made.recv(2048)
            except OSError:
                continue  # nothing there, or the error itself, whose story the queue has
            return Reply(self._host, (now - begun) / 1e6, "answer")
        return None


class _Tcp:
    """A SYN a probe, all from the port that the first one got."""

    def __init__(self, interface: str, address: tuple[str, int]) -> None:
        self._interface, self._address, self._port = interface, address, 0

    def close(self) -> None:
        """Nothing stays open between probes."""

    def send(self, ttl: int, number: int, timeout_s: float) -> Reply | None:
        del number
        host = self._address[0]
        with _prepared(socket.SOCK_STREAM, self._interface, host) as made:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            made.setsockopt(socket.IPPROTO_TCP, _SYNCNT, 1)
            _live_for(made, host, ttl)
            made.bind(("::" if ":" in host else "0.0.0.0", self._port))  # noqa: S104  (the interface is chosen above)
            self._port = made.getsockname()[1]
            begun = time.monotonic_ns()
            code = made.connect_ex(self._address)
            if code not in (0, errno.EINPROGRESS, errno.ECONNREFUSED):
                raise OSError(code, errno.errorcode.get(code, str(code)))
            poll = select.poll()
            poll.register(made, select.POLLOUT)
            if code == errno.EINPROGRESS and not poll.poll(timeout_s * 1000):
                return None
            rtt_ms = (time.monotonic_ns() - begun) / 1e6
            while (one := _queued(made)) is not None:
                if one[1] is not None:
                    return Reply(one[1].offender, rtt_ms, one[1].kind)
            failure = code if code == errno.ECONNREFUSED else made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failure in (0, errno.ECONNREFUSED):
                return Reply(host, rtt_ms, "answer")
            return None


# ---------------------------------------------------------------------------------------------------------------------
# The table of systems, what traces have in common, and the experiment.


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
        return ("udp", "tcp") if self.protocol == "both" else (self.protocol,)

    def plan(self, protocol: str) -> Plan:
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
