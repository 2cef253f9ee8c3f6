"""Parameters of an experiment: declared once with type, unit and range, checked before anything is measured, and kept as checked values.

``Parameter`` declares one. What every experiment takes is ``COMMON`` and, checked, ``CommonParameters``. An experiment of the package adds
its own as fields of a class on it (``parameter``), from which ``parameters_of`` makes the declarations and ``read_request`` the values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from tandem.mptcp import sockets
from tandem.schema.url import PORTS, Origin

Kind = Literal["int", "float", "str", "bool", "object", "list"]


class ParameterError(ValueError):
    """A parameter is missing, unknown or out of range; the message is one line that names it and how to fix it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. Range inclusive, in ``unit``; ``default`` None with ``required`` False: may be left out."""

    name: str
    kind: Kind
    purpose: str
    unit: str = ""
    required: bool = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str | int, ...] = ()
    """Texts, or whole numbers."""
    keys: tuple[str, ...] = ()
    """Keys that an object (or each object of a list) must have, as text; others are left alone."""
    file: bool = False
    """Names a file or folder of this machine: campaigns that the server pushed may name those of the probe's folder only."""

    def describe(self) -> dict[str, Any]:
        """For ``--describe``: what is not the default."""
        shown = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        return {name: v for name, (v, default) in shown.items() if type(v) is not type(default) or v != default}


def check(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` with defaults filled in; ParameterError names the first thing wrong."""
    known = {p.name: p for p in parameters}
    for name in given:
        if name not in known:
            raise ParameterError(f"unknown parameter {name!r}; known: {', '.join(known)}")
    checked = {}
    for p in parameters:
        value = given.get(p.name)
        if value is None and p.required:
            raise ParameterError(f"parameter {p.name!r} is missing: {p.purpose}")
        checked[p.name] = p.default if value is None else _checked(p, value)
    return checked


_TYPES: dict[Kind, tuple[type[Any], ...]] = {
    "int": (int,), "float": (int, float), "str": (str,), "bool": (bool,), "object": (dict,), "list": (list, tuple),
}  # fmt: skip
_WORDS: dict[Kind, str] = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "object": "an object", "list": "a list",
}  # fmt: skip


def is_of(kind: Kind, value: object) -> bool:
    """Whether a JSON value is of this kind; a whole number is a float, too."""
    return isinstance(value, _TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))


def _checked(p: Parameter, value: Any) -> Any:  # noqa: ANN401  any JSON value
    name, unit, number = p.name, f" {p.unit}" if p.unit else "", p.kind in ("int", "float")
    if not is_of(p.kind, value) or (isinstance(value, float) and not math.isfinite(value)):
        raise ParameterError(f"parameter {name!r}: {value!r} is not {_WORDS[p.kind]}")
    if number and p.minimum is not None and value < p.minimum:
        raise ParameterError(f"parameter {name!r}: {value}{unit} is below {p.minimum:g}{unit}")
    if number and p.maximum is not None and value > p.maximum:
        raise ParameterError(f"parameter {name!r}: {value}{unit} is above {p.maximum:g}{unit}")
    if p.choices and value not in p.choices:
        raise ParameterError(f"parameter {name!r}: {value!r} is not one of {', '.join(map(str, p.choices))}")
    if p.kind == "object":
        _keys(p, value, name)
    for index, item in enumerate(value if p.kind == "list" else ()):
        if not isinstance(item, dict):
            raise ParameterError(f"parameter {name!r}: entry {index} is not an object")
        _keys(p, item, f"{name}[{index}]")
    return float(value) if p.kind == "float" else value


def _keys(p: Parameter, value: Mapping[str, Any], where: str) -> None:
    for key in p.keys:
        if not isinstance(value.get(key), str) or not value[key]:
            raise ParameterError(f"parameter {where!r}: {key!r} is missing or not text")


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
    def source(self) -> sockets.Source:
        return sockets.Source(self.interface)


@dataclass(frozen=True, slots=True)
class CommonParameters:
    """The common part, checked. ``paths`` as given, the primary first where the experiment has one. ``capture``: the server captures each
    session, too."""

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
    if primary is not None and primary not in names:
        raise ParameterError(f"parameter 'path': {primary!r} is none of the paths {', '.join(names)}")
    if primary is not None:
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


def origin(url: str, schemes: tuple[str, ...]) -> Origin:
    """Take a URL apart; ParameterError unless it is scheme://host[:port] with one of ``schemes``."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ParameterError(f"{url!r} is no URL: {error}") from error
    if parts.scheme not in schemes or not parts.hostname or parts.path not in ("", "/"):
        raise ParameterError(f"{url!r} is not of the form {' or '.join(f'{scheme}://HOST:PORT' for scheme in schemes)}")
    return Origin(parts.scheme, parts.hostname, port or PORTS[parts.scheme])


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


R = TypeVar("R", bound=CommonParameters)
_KINDS: dict[str, Kind] = {"int": "int", "float": "float", "bool": "bool", "dict": "object"}


def parameter(purpose: str, unit: str = "", **more: Any) -> Any:  # noqa: ANN401  the field's type is what its class says
    """A field of a class on ``CommonParameters`` that is a parameter; ``more``: as of ``Parameter``. Its kind follows from the field's
    type: a number, a truth, a ``dict``; anything else is made of text."""
    return field(kw_only=True, metadata={"purpose": purpose, "unit": unit, **more})


def parameters_of(request: type[CommonParameters]) -> tuple[Parameter, ...]:
    """``COMMON`` and the fields made by ``parameter``. The module of each field's class has ``from __future__ import annotations``."""
    declared = {f.name: f for f in fields(request) if f.metadata}
    kinds = {name: _KINDS.get(str(f.type).split(" |")[0].split("[")[0], "str") for name, f in declared.items()}
    return (*COMMON, *(Parameter(name, kinds[name], **f.metadata) for name, f in declared.items()))


def read_request(request: type[R], parameters: dict[str, Any], **derived: Any) -> R:  # noqa: ANN401  whatever its fields are
    """A ``request`` from parameters that are checked one by one; the parameter ``path``, where there is one, names the path that comes
    first. ``derived``: fields that come of several parameters, or have another type. ParameterError as ``read_common``."""
    common = read_common(parameters, parameters.get("path"))
    shared = {f.name: getattr(common, f.name) for f in fields(CommonParameters)}
    values = {**parameters, **derived}
    return request(**shared, **{f.name: values[f.name] for f in fields(request) if f.name not in shared})


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """As requested by who receives and who sends the payload, whichever end that is; None leaves it to the kernel. An accepted connection's
    window scale is its listener's, so the endpoint's receive buffer holds the window down, but cannot raise it."""

    receive_buffer_bytes: int | None = None
    send_buffer_bytes: int | None = None
    congestion_control: str | None = None

    def here(self, *, sends: bool, both_families: bool = False, by_orders: bool = False) -> sockets.Options:
        """This end's part; ``sends``: whether this end does."""
        return sockets.Options(
            receive_buffer_bytes=None if sends else self.receive_buffer_bytes,
            send_buffer_bytes=self.send_buffer_bytes if sends else None,
            congestion_control=self.congestion_control if sends else None,
            both_families=both_families,
            by_orders=by_orders,
        )

    def there(self, *, sends: bool) -> dict[str, dict[str, Any]]:
        """The endpoint's part, as the request for a session has it (``docs/reference/endpoint-api.md``): ``options``, or
        nothing. ``sends``: whether the endpoint does."""
        names = ("send_buffer_bytes", "congestion_control") if sends else ("receive_buffer_bytes",)
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {"options": given} if given else {}

    def to_dict(self) -> dict[str, Any]:
        return {
            "receive_buffer_asked_bytes": self.receive_buffer_bytes,
            "send_buffer_asked_bytes": self.send_buffer_bytes,
            "congestion_control_asked": self.congestion_control,
        }


@dataclass(frozen=True, slots=True)
class ConnectionParameters(CommonParameters):
    """Of an experiment whose measured connections are all of one kind and over one primary path; ``paths`` has that first."""

    # fmt: off
    kind: sockets.Kind = parameter("Multipath TCP over all paths, or TCP over one", required=True, choices=("mptcp", "tcp"))
    path: str = parameter("the primary path of MPTCP, the only one of TCP", required=True)
    sample_hz: float = parameter("readings of the kernel's statistics", "1/s", default=10.0, minimum=1, maximum=100)
    connect_timeout_s: float = parameter("for each measured connection", "s", default=15.0, minimum=0.1, maximum=120)
    receive_buffer_bytes: int | None = parameter("SO_RCVBUF at the payload's receiver; by default tuned", "B", minimum=4096, maximum=2**30)
    send_buffer_bytes: int | None = parameter("SO_SNDBUF at the payload's sender; by default tuned", "B", minimum=4096, maximum=2**30)
    congestion_control: str | None = parameter("at the sender; by default the system's")
    # fmt: on

    @property
    def options(self) -> SocketOptions:
        return SocketOptions(self.receive_buffer_bytes, self.send_buffer_bytes, self.congestion_control or None)

    @property
    def carrying(self) -> tuple[ProbePath, ...]:
        """The paths that a connection runs over, the primary first."""
        return self.paths if self.kind == "mptcp" else self.paths[:1]


SOCKET_OPTIONS = tuple(p for p in parameters_of(ConnectionParameters) if p.name in SocketOptions.__annotations__)
"""An experiment that moves bytes takes these among its parameters. The kernel doubles what is requested of a buffer and bounds it by
``net.core.rmem_max`` and ``wmem_max``: both ends report what came of it."""
