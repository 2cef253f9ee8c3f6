"""What a download is asked to do: the parameters, and the same as checked values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tandem.experiment.parameters import Parameter, ParameterError
from tandem.mptcp.sockets import Kind, Source

PARAMETERS = (
    Parameter("run", "str", "the run's id", required=True),
    Parameter("kind", "str", "Multipath TCP over all paths, or TCP over one", required=True, choices=("mptcp", "tcp")),
    Parameter("path", "str", "the primary path of MPTCP, the only one of TCP", required=True),
    Parameter("paths", "list", "paths: name, interface[, operator, address]", required=True, keys=("name", "interface")),
    Parameter("bytes", "int", "payload to download; this or seconds", "B", minimum=1, maximum=1e12),
    Parameter("seconds", "float", "how long to download; this or bytes", "s", minimum=0.1, maximum=3600),
    Parameter("server", "object", "control, measurement, token_file[, ca_file]", required=True, keys=("control", "measurement")),
    Parameter("sample_hz", "float", "readings of the kernel's statistics", "1/s", default=10.0, minimum=1, maximum=100),
    Parameter("whoami", "bool", "ask the endpoint for each path's public address first", default=True),
    Parameter("connect_timeout_s", "float", "for the measured connection", "s", default=15.0, minimum=0.1, maximum=120),
    Parameter("control_timeout_s", "float", "for each control request", "s", default=8.0, minimum=0.1, maximum=120),
    Parameter("stall_s", "float", "without a byte for so long the run has failed", "s", default=10.0, minimum=0.5, maximum=600),
    Parameter("deadline_s", "float", "the whole run; by default seconds + 30, or 600", "s", minimum=1, maximum=7200),
    Parameter("receive_buffer_bytes", "int", "SO_RCVBUF; by default the kernel tunes it", "B", minimum=4096, maximum=2**30),
    Parameter("read_pause_s", "float", "between two reads in mid-stream", "s", default=0.004, minimum=0, maximum=0.1),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProbePath:
    """A path of the probe. ``address`` is its own, which NAT may hide from the server."""

    name: str
    interface: str
    operator: str | None
    address: str | None

    @property
    def source(self) -> Source:
        """Where a connection over this path starts."""
        return Source(self.interface)


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port of a URL."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Request:
    """A download, checked. Exactly one of ``bytes`` and ``seconds`` is set. ``paths`` has the primary first."""

    run: str
    kind: Kind
    paths: tuple[ProbePath, ...]
    bytes: int | None
    seconds: float | None
    control: Origin
    measurement: Origin
    token: str
    ca_file: str | None
    sample_hz: float
    whoami: bool
    connect_timeout_s: float
    control_timeout_s: float
    stall_s: float
    deadline_s: float
    receive_buffer_bytes: int | None
    read_pause_s: float

    @property
    def primary(self) -> ProbePath:
        """The primary path of MPTCP, the only path of TCP."""
        return self.paths[0]


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one to a request; ParameterError when they contradict each other."""
    p = parameters
    if (p["bytes"] is None) == (p["seconds"] is None):
        raise ParameterError("give either 'bytes' or 'seconds'")
    paths = [ProbePath(x["name"], x["interface"], _text(x, "operator"), _text(x, "address")) for x in p["paths"]]
    names = [path.name for path in paths]
    if len(set(names)) != len(names):
        raise ParameterError(f"parameter 'paths': a name occurs twice in {', '.join(names)}")
    primary = next((path for path in paths if path.name == p["path"]), None)
    if primary is None:
        raise ParameterError(f"parameter 'path': {p['path']!r} is none of the paths {', '.join(names)}")
    others = [path for path in paths if path is not primary]
    server = p["server"]
    control = origin(server["control"], ("https", "http"))
    ca_file = _text(server, "ca_file")
    return Request(
        run=p["run"],
        kind=p["kind"],
        paths=(primary, *others),
        bytes=p["bytes"],
        seconds=p["seconds"],
        control=control,
        measurement=origin(server["measurement"], ("http",)),
        token=_token(server),
        ca_file=ca_file,
        sample_hz=p["sample_hz"],
        whoami=p["whoami"],
        connect_timeout_s=p["connect_timeout_s"],
        control_timeout_s=p["control_timeout_s"],
        stall_s=p["stall_s"],
        deadline_s=p["deadline_s"] or (600.0 if p["seconds"] is None else p["seconds"] + 30),
        receive_buffer_bytes=p["receive_buffer_bytes"],
        read_pause_s=p["read_pause_s"],
    )


def origin(url: str, schemes: tuple[str, ...]) -> Origin:
    """Take a URL apart; ParameterError unless it is scheme://host[:port] with one of ``schemes``."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ParameterError(f"{url!r} is no URL: {error}") from error
    if parts.scheme not in schemes or not parts.hostname or parts.path not in ("", "/"):
        raise ParameterError(f"{url!r} is not of the form {' or '.join(schemes)}://HOST:PORT")
    return Origin(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80))


def _text(holder: dict[str, Any], key: str) -> str | None:
    value = holder.get(key)
    if value is not None and not isinstance(value, str):
        raise ParameterError(f"{key!r}: {value!r} is not text")
    return value or None


def _token(server: dict[str, Any]) -> str:
    """The token, from its file: never among the parameters, which are logged and stored."""
    name = _text(server, "token_file")
    if name is None:
        raise ParameterError("parameter 'server': 'token_file' is missing")
    try:
        token = Path(name).read_text().strip()
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name with a zero byte
        raise ParameterError(f"token file {name!r}: {getattr(error, 'strerror', None) or error}") from error
    if not token or not token.isascii() or not token.isprintable():
        raise ParameterError(f"token file {name!r}: holds no token")
    return token
