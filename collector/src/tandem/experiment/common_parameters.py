"""What every experiment is asked: its run, the paths that it may use, the server. Shared parameters, and the same as checked values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tandem.experiment.parameters import Parameter, ParameterError
from tandem.mptcp.sockets import Source

COMMON = (
    Parameter("run", "str", "the run's id", required=True),
    Parameter("paths", "list", "paths: name, interface[, operator, address]", required=True, keys=("name", "interface")),
    Parameter("server", "object", "control, measurement, token_file[, ca_file, capture]", required=True, keys=("control", "measurement")),
    Parameter("control_timeout_s", "float", "for each control request", "s", default=8.0, minimum=0.1, maximum=120),
)  # fmt: skip
"""An experiment's own parameters come after these. ``run``, ``paths`` and ``server`` are the collector's to give, never a person's."""


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

    @property
    def authority(self) -> str:
        """Host and port as in Host and in URLs."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class CommonParameters:
    """The common part, checked. ``paths`` as given, the primary first where the experiment has one. ``capture``: the server is asked to
    capture each session, too."""

    run: str
    paths: tuple[ProbePath, ...]
    control: Origin
    measurement: Origin
    token: str
    ca_file: str | None
    control_timeout_s: float
    capture: bool = field(default=False, kw_only=True)

    @property
    def primary(self) -> ProbePath:
        """The first path."""
        return self.paths[0]


def read_common(parameters: dict[str, Any], primary: str | None = None) -> CommonParameters:
    """From parameters that are checked one by one; ``primary``: the path that comes first. ParameterError when they contradict each
    other or the token cannot be read."""
    p = parameters
    paths = [ProbePath(x["name"], x["interface"], text(x, "operator"), text(x, "address")) for x in p["paths"]]
    names = [path.name for path in paths]
    if not names:
        raise ParameterError("parameter 'paths': no path")
    if len(set(names)) != len(names):
        raise ParameterError(f"parameter 'paths': a name occurs twice in {', '.join(names)}")
    if primary is not None:
        if primary not in names:
            raise ParameterError(f"parameter 'path': {primary!r} is none of the paths {', '.join(names)}")
        paths.sort(key=lambda path: path.name != primary)
    server = p["server"]
    return CommonParameters(
        run=p["run"],
        paths=tuple(paths),
        control=origin(server["control"], ("https", "http")),
        measurement=origin(server["measurement"], ("http", "https")),
        token=_token(server),
        ca_file=text(server, "ca_file"),
        control_timeout_s=p["control_timeout_s"],
        capture=server.get("capture") is True,
    )


R = TypeVar("R", bound=CommonParameters)


def extended(request: type[R], common: CommonParameters, values: Mapping[str, Any]) -> R:
    """A ``request`` of the fields that ``common`` has and, by their names, of its own from ``values``."""
    shared = {f.name: getattr(common, f.name) for f in fields(CommonParameters)}
    return request(**shared, **{f.name: values[f.name] for f in fields(request) if f.name not in shared})


def origin(url: str, schemes: tuple[str, ...]) -> Origin:
    """Take a URL apart; ParameterError unless it is scheme://host[:port] with one of ``schemes``."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ParameterError(f"{url!r} is no URL: {error}") from error
    if parts.scheme not in schemes or not parts.hostname or parts.path not in ("", "/"):
        raise ParameterError(f"{url!r} is not of the form {' or '.join(f'{scheme}://HOST:PORT' for scheme in schemes)}")
    return Origin(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80))


def text(holder: dict[str, Any], key: str) -> str | None:
    """The text at ``key``, None when it is absent or empty; ParameterError when it is anything else."""
    value = holder.get(key)
    if value is not None and not isinstance(value, str):
        raise ParameterError(f"{key!r}: {value!r} is not text")
    return value or None


def _token(server: dict[str, Any]) -> str:
    """The token, from its file: never among the parameters, which are logged and stored."""
    name = text(server, "token_file")
    if name is None:
        raise ParameterError("parameter 'server': 'token_file' is missing")
    try:
        token = Path(name).read_text().strip()
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name with a zero byte
        raise ParameterError(f"token file {name!r}: {getattr(error, 'strerror', None) or error}") from error
    if not token or not token.isascii() or not token.isprintable():
        raise ParameterError(f"token file {name!r}: holds no token")
    return token
