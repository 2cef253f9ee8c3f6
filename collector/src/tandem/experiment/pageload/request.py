"""What page loads are asked for: the parameters, and the same as checked values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tandem.experiment.common_parameters import COMMON, CommonParameters, extended, read_common
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.socket_options import SOCKET_OPTIONS, SocketOptions, read_socket_options
from tandem.mptcp.sockets import Kind

BROWSERS = ("auto", "chromium", "none", "both")
ALL = "all"
MOST_LOADS = 2000
"""A row of each goes into the result."""

PARAMETERS = (
    *COMMON,
    Parameter("kind", "str", "Multipath TCP over all paths, or TCP over one", required=True, choices=("mptcp", "tcp")),
    Parameter("path", "str", "the primary path of MPTCP, the only one of TCP", required=True),
    Parameter("pages", "str", "names of stored pages on the server, with commas, or all", default="synthetic-page"),
    Parameter("first", "int", "with pages all: at most so many, by name", "1", default=1000, minimum=1, maximum=MOST_LOADS),
    Parameter("browser", "str", "none: the object graph alone; both in turn; auto: where there is one", default="auto", choices=BROWSERS),
    Parameter("repetitions", "int", "loads of each page", "1", default=1, minimum=1, maximum=1000),
    Parameter("pause_s", "float", "between loads", "s", default=0.0, minimum=0, maximum=3600),
    Parameter("load_timeout_s", "float", "a load that is not done by then has failed", "s", default=60.0, minimum=0.5, maximum=600),
    Parameter("start_timeout_s", "float", "for the browser to start, which is not measured", "s", default=60.0, minimum=1, maximum=300),
    *SOCKET_OPTIONS,
    Parameter("connect_timeout_s", "float", "for each measured connection", "s", default=15.0, minimum=0.1, maximum=120),
    Parameter("sandbox", "bool", "Chromium's own; root never has it", default=True),
    Parameter("sample_hz", "float", "readings of the kernel's statistics", "1/s", default=10.0, minimum=1, maximum=100),
    Parameter("deadline_s", "float", "the whole run", "s", default=600.0, minimum=1, maximum=90000),
)  # fmt: skip

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """Page loads, checked. ``paths`` has the primary first. ``names`` empty: all of the server's."""

    kind: Kind
    names: tuple[str, ...]
    first: int
    browser: str
    repetitions: int
    pause_s: float
    load_timeout_s: float
    start_timeout_s: float
    options: SocketOptions
    connect_timeout_s: float
    sandbox: bool
    sample_hz: float
    deadline_s: float

    @property
    def used(self) -> tuple[str, ...]:
        """The names of the paths that the connections may use."""
        return tuple(path.name for path in (self.paths if self.kind == "mptcp" else self.paths[:1]))


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one to a request; ParameterError when they contradict each other."""
    p = dict(parameters)
    asked = [name.strip() for name in p["pages"].split(",") if name.strip()]
    if not asked:
        raise ParameterError("parameter 'pages': no name")
    for name in asked:
        if not _NAME.match(name):
            raise ParameterError(f"parameter 'pages': {name[:40]!r} is not a name of letters, digits, '.', '_', '-'")
    p["names"] = () if asked == [ALL] else tuple(dict.fromkeys(asked))
    if len(p["names"]) * p["repetitions"] * (1 + (p["browser"] == "both")) > MOST_LOADS:
        raise ParameterError(f"parameters 'pages' and 'repetitions': more than {MOST_LOADS} loads in one run")
    p["options"] = read_socket_options(p)
    common = read_common(p, p["path"])
    if common.measurement.scheme != "http":
        raise ParameterError(
            "parameter 'server': pages bring their own TLS; hint: measurement = http://HOST:PORT for page loads"
        )
    return extended(Request, common, p)
