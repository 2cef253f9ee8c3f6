"""What a download is asked to do: the parameters, and the same as checked values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from tandem.experiment.common_parameters import COMMON, CommonParameters, ProbePath, read_common
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.socket_options import SOCKET_OPTIONS, SocketOptions, read_socket_options
from tandem.mptcp.sockets import Kind

SUBFLOWS = (1, 2, 4)
"""The primary path alone; two paths; two paths to two addresses of the server each."""

PARAMETERS = (
    *COMMON,
    Parameter("kind", "str", "Multipath TCP over all paths, or TCP over one", required=True, choices=("mptcp", "tcp")),
    Parameter("path", "str", "the primary path of MPTCP, the only one of TCP", required=True),
    Parameter("bytes", "int", "payload to download; this or seconds", "B", minimum=1, maximum=1e12),
    Parameter("seconds", "float", "how long to download; this or bytes", "s", minimum=0.1, maximum=3600),
    Parameter("sample_hz", "float", "readings of the kernel's statistics", "1/s", default=10.0, minimum=1, maximum=100),
    Parameter("whoami", "bool", "ask the endpoint for each path's public address first", default=True),
    Parameter("connect_timeout_s", "float", "for the measured connection", "s", default=15.0, minimum=0.1, maximum=120),
    Parameter("stall_s", "float", "without a byte for so long the run has failed", "s", default=10.0, minimum=0.5, maximum=600),
    Parameter("deadline_s", "float", "the whole run; by default seconds + 30, or 600", "s", minimum=1, maximum=7200),
    *SOCKET_OPTIONS,
    Parameter("subflows", "int", "of MPTCP, ordered one by one; by default one a path", "subflows", minimum=1, maximum=4, choices=SUBFLOWS),
    Parameter("join_before_request", "bool", "with 2 or 4 subflows: hold the request until all are there", default=False),
    Parameter("read_pause_s", "float", "between two reads in mid-stream", "s", default=0.004, minimum=0, maximum=0.1),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A download, checked. Exactly one of ``bytes`` and ``seconds`` is set. ``paths`` has the primary first. ``subflows`` None: the
    kernel opens one from each of its endpoints. ``join_before_request``: the request is held until they are there."""

    kind: Kind
    bytes: int | None
    seconds: float | None
    sample_hz: float
    whoami: bool
    connect_timeout_s: float
    stall_s: float
    deadline_s: float
    options: SocketOptions
    subflows: int | None
    join_before_request: bool
    read_pause_s: float

    @property
    def carrying(self) -> tuple[ProbePath, ...]:
        """The paths that the connection runs over, the primary first: of a number of subflows the first or the first two."""
        if self.kind == "tcp":
            return self.paths[:1]
        return self.paths if self.subflows is None else self.paths[: min(self.subflows, 2)]

    @property
    def addresses_each(self) -> int:
        """To how many of the server's addresses each path has a subflow."""
        return 2 if self.subflows == 4 else 1


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one to a request; ParameterError when they contradict each other."""
    p = parameters
    if (p["bytes"] is None) == (p["seconds"] is None):
        raise ParameterError("give either 'bytes' or 'seconds'")
    own = (
        "kind", "bytes", "seconds", "sample_hz", "whoami", "connect_timeout_s", "stall_s", "subflows", "join_before_request",
        "read_pause_s",
    )  # fmt: skip
    _subflows(p)
    common = read_common(p, p["path"])
    return Request(
        **{f.name: getattr(common, f.name) for f in fields(common)},
        **{name: p[name] for name in own},
        options=read_socket_options(p),
        deadline_s=p["deadline_s"] or (600.0 if p["seconds"] is None else p["seconds"] + 30),
    )


def _subflows(p: dict[str, Any]) -> None:
    wanted, paths = p["subflows"], len(p["paths"])
    if p["join_before_request"] and (wanted or 1) < 2:
        raise ParameterError("parameter 'join_before_request': give subflows = 2 or 4, which are waited for")
    if wanted is None:
        return
    if p["kind"] == "tcp":
        raise ParameterError("parameter 'subflows' is of MPTCP; TCP has one connection over one path")
    if wanted > 1 and paths < 2:
        raise ParameterError(f"parameter 'subflows': {wanted} take two paths, there is {paths}")
