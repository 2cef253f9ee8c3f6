"""``server.toml``: every key once, as a field with its type, default, range and hint. What is unknown, of the wrong type or impossible
stops the start, with file and line. Opens no other file."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

from tandem.schema.toml_file import WORDS, Key, Kind, Place, TomlReader
from tandem_server.cli.command import ConfigError, config_file
from tandem_server.endpoint.sessions import Limits, Share
from tandem_server.ledger.states import Tolerances
from tandem_server.registry import HUB_AND_PEOPLE, Network, valid_name

BYTES_IN_FLIGHT_LEAST = 3 * 8 * 1024 * 1024
"""For each gateway process: one largest request must have room."""
MOST_ADDRESSES = 4
"""Probes pass over more."""
_ABOVE_0 = "a number above 0"
_DAYS = (
    7,
    36_500,
    "7 or more, or leave it out for ever",
)  # the database counts in nanoseconds: much more than this it cannot
_ENDPOINT = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?):([0-9]{1,5})"
_T = TypeVar("_T")


def _key(default: object, low: float | None, high: float | None, hint: str, *, above: bool = False) -> Any:  # noqa: ANN401  a field
    """A number with its range, both ends included unless ``above``; None: absent."""
    return field(default=default, metadata={"hint": hint, "minimum": low, "maximum": high, "above": above})


def _port(default: int | None) -> Any:  # noqa: ANN401  a field
    return _key(default, 1, 65_535, "a port from 1 to 65535")


def _text(default: str | None, pattern: str, hint: str, *, required: bool = False) -> Any:  # noqa: ANN401  a field
    """A text that matches as a whole."""
    check = _matching(pattern)
    return field(default=default, metadata={"hint": hint, "check": check, "required": required})


def _matching(pattern: str) -> Callable[[str], str | None]:
    return lambda value: None if re.fullmatch(pattern, value) else f"{value!r} cannot be"


@dataclass(frozen=True, slots=True)
class Listen:
    """Where the listeners are. ``host`` ``::``: every address of both families, of IPv4 alone where the kernel has no IPv6.
    ``measurement_tls_port``: measurements with TLS, too, on another port; None: none. ``multipath`` ``optional``: go on without
    Multipath TCP when the kernel has none. ``processes`` serve the measurements; 0: as many
    as there are cores. ``gateway_processes`` answer the probes' records. ``further_addresses``: where the measurement listeners
    are reached besides, reported to probes for more subflows. ``pages_port``: runs' reports and files for browsers (``[pages]``); None: not
    served."""

    host: str = "::"
    gateway_port: int = _port(8443)
    control_port: int = _port(8444)
    measurement_port: int = _port(8480)
    measurement_tls_port: int | None = _port(None)
    multipath: Literal["required", "optional"] = "required"
    processes: int = _key(0, 0, 256, "1 to 256, or 0 for one a core")
    gateway_processes: int = _key(1, 1, 64, "1 to 64")
    further_addresses: tuple[str, ...] = ()
    pages_port: int | None = _port(None)


@dataclass(frozen=True, slots=True)
class Tls:
    """Server certificate and its key, PEM."""

    certificate: Path = Path("tls/server.pem")
    key: Path = Path("tls/server.key")


@dataclass(frozen=True, slots=True)
class Store:
    """The InfluxDB 1.x with the records. ``private``: ``binary`` (else looked for), ``folder``, ``port``, ``backup_port`` (where the
    database hands out and takes backups, on loopback and without asking who it is: a firewall must; None: another free one at each
    start). ``running``: ``url``, ``user``, ``password_file``. ``retention_days``: of raw records; ``minute_days``, ``hour_days``: of
    roll-ups. None: for ever."""

    kind: Literal["private", "running"] = "private"
    binary: Path | None = None
    folder: Path = Path("influxdb")
    port: int = _port(8086)
    backup_port: int | None = _port(None)
    url: str | None = _text(None, r"https?://[^/\s]+/*", "http://HOST:PORT")
    user: str | None = None
    password_file: Path | None = None
    database: str = _text("tandem", r"[A-Za-z_][A-Za-z0-9_]{0,63}", "letters, digits, _")
    retention_days: int | None = _key(None, *_DAYS)
    minute_days: int | None = _key(None, *_DAYS)
    hour_days: int | None = _key(None, *_DAYS)


@dataclass(frozen=True, slots=True)
class Mirror:
    """A single-node VictoriaMetrics that gets what the database of ``[store]`` accepted; None: none. It is read with its own tools: ledger,
    reports, roll-ups and boards ask the database. ``user`` and ``password_file`` where it asks for them. ``texts``: what becomes of fields
    that are text, since it holds numbers only."""

    url: str | None = _text(None, r"https?://[^/\s]+/*", "http://HOST:PORT")
    user: str | None = None
    password_file: Path | None = None
    texts: Literal["labels", "dropped"] | None = None


@dataclass(frozen=True, slots=True)
class RegistryFile:
    """The registry's SQLite file."""

    file: Path = Path("registry.sqlite")


@dataclass(frozen=True, slots=True)
class Content:
    """Where DASH presentations are (``tandem-server dash build``); need not exist."""

    folder: Path = Path("content")


@dataclass(frozen=True, slots=True)
class Bounds(Limits):
    """Each above 0. Bytes are payload; ``_s`` seconds. ``connections…``: of the measurement listener, so many with a session (in all, of
    one probe) and as many without (in all, of one address); ``https_…``: of gateway and control channel,
    each process its own, ``strangers`` being those that have shown no good token. ``probe_…_per_minute``: of each probe, at each of the
    two; bytes as sent. ``probe_document_bytes_per_day``: of each probe's manifests at the one, results at the other, as stored.
    ``probe_series_per_hour``: that each probe may begin (at each process of the gateway).
    ``new_connections_per_address``, ``failures_per_address`` (requests without a good token): a minute.
    Of the gateway, all its processes together: ``requests_at_once``, and ``bytes_in_flight`` held of their bodies."""

    connections: int = 256
    connections_per_probe: int = 128
    connections_per_address: int = 128
    requests_at_once: int = 2048
    bytes_in_flight: int = 67_108_864
    clock_ahead_s: float = 600.0
    https_connections: int = 4096
    https_connections_per_probe: int = 64
    https_strangers: int = 256
    https_strangers_per_address: int = 64
    new_connections_per_address: int = 600
    failures_per_address: int = 30
    body_s: float = 60.0
    probe_requests_per_minute: int = 3_000
    probe_lines_per_minute: int = 1_200_000
    probe_sent_bytes_per_minute: int = 1_000_000_000
    probe_document_bytes_per_day: int = 200_000_000
    probe_series_per_hour: int = 20_000


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Where the results are kept that probes hand in with their sessions."""

    folder: Path = Path("results")


@dataclass(frozen=True, slots=True)
class CaptureFiles:
    """Captures at the endpoint, of sessions that ask for one: none unless ``allowed``. ``budget_bytes`` for all on disk together."""

    allowed: bool = False
    folder: Path = Path("captures")
    budget_bytes: int = _key(2_000_000_000, 1, None, _ABOVE_0)


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """``prefix`` before every key; ``endpoint_url``: another service than AWS; ``region``: else the environment's. Credentials come
    from the environment or the machine's role, never from here. ``encryption`` by the service: its own keys, the bucket's KMS key, or none
    where the service has none."""

    bucket: str = _text(
        "", r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "the bucket's name, 3 to 63 of a-z, 0-9, '.', '-'", required=True
    )
    prefix: str = _text(
        "traces", r"(?=.{,200}\Z)(?:[A-Za-z0-9!_.*'()-]+/?)*", "parts of letters and digits with '/' between"
    )
    endpoint_url: str | None = _text(None, r"https?://[^/\s@]+/?", "https://HOST[:PORT]")
    region: str | None = None
    encryption: Literal["AES256", "aws:kms", "none"] = "AES256"


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """``folder``: received traces, and what is on its way; with ``s3`` only the latter, received ones go there. Bytes a day are
    those of one probe. ``unfinished_days``: after which what nothing comes for is given up. ``analyse``: tables of captures are made when
    they come, in ``analyse_workers`` processes."""

    folder: Path = Path("traces")
    s3: S3Bucket | None = None
    trace_bytes: int = _key(16_000_000_000, 1, 1e18, _ABOVE_0)
    probe_bytes_per_day: int = _key(20_000_000_000, 1, 1e18, _ABOVE_0)
    unfinished_per_probe: int = _key(16, 1, 1e18, _ABOVE_0)
    unfinished_days: float = _key(14.0, 0, 1e18, _ABOVE_0, above=True)
    reserve_bytes: int = _key(1_000_000_000, 0, 1e18, "0 or more")
    analyse: bool = True
    analyse_workers: int = _key(1, 1, 1024, "1 to 1024")


@dataclass(frozen=True, slots=True)
class OwnSeries:
    """``every_s``: seconds from point to point of the server's own series. ``settle_s``: for how long an hour's
    note of late lines stands unchanged before the hour is made again."""

    every_s: int = _key(60, 2, 600, "2 to 600 seconds, 60 where alarms watch")
    settle_s: int = _key(30, 1, 3600, "1 to 3600 seconds")


@dataclass(frozen=True, slots=True)
class PageServing:
    """Where ``[listen] pages_port`` is. Whoever reaches it reads all runs and traces: so it is loopback, unless ``behind_proxy`` says
    that a reverse proxy with a login of its own stands before it. ``password_file``: of the account ``reader``, for ``[store] kind =
    "running"``; by default the store's own account is used there."""

    host: str = "127.0.0.1"
    behind_proxy: bool = False
    password_file: Path | None = None


@dataclass(frozen=True, slots=True)
class WireGuard:
    """The tunnel by which people reach probes behind a carrier's NAT; without ``network`` there is none. The hub has its first address.
    ``public_key_file``: the hub's, one line, made where the hub is set up. ``endpoint``: the hub as probes reach it, HOST:PORT."""

    network: str | None = None
    public_key_file: Path = Path("/etc/tandem/wireguard.pub")
    endpoint: str | None = None

    @property
    def addresses(self) -> Network | None:
        """The network that was checked."""
        return None if self.network is None else ipaddress.ip_network(self.network)


@dataclass(frozen=True, slots=True)
class ExpectedCollector:
    """``version``: of the collector that probes shall run, reported to those that ask (``tandem preflight``); None: the server's own,
    since both are released together. No probe is turned away for another."""

    version: str | None = None


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """A whole server.toml; relative paths are made absolute from the file's folder. ``probes``: by name what one may have that is not
    everybody's (``[probes.NAME]``)."""

    file: Path
    listen: Listen
    tls: Tls
    store: Store
    mirror: Mirror
    registry: RegistryFile
    content: Content
    limits: Bounds
    results: ResultFiles
    capture: CaptureFiles
    traces: TraceFiles
    states: Tolerances
    series: OwnSeries
    pages: PageServing
    wireguard: WireGuard
    collector: ExpectedCollector
    probes: dict[str, Share]


TABLES: dict[str, type] = {n: t for n, t in get_type_hints(ServerConfig).items() if n not in ("file", "probes")}
"""The sections by name, ``[probes.NAME]`` apart."""
_UNIFORM: dict[type, dict[str, Any]] = {
    Bounds: {"hint": _ABOVE_0, "minimum": 0, "above": True, "maximum": 1e18},
    Share: {"hint": _ABOVE_0, "minimum": 0, "above": True},
    Tolerances: {"hint": "seconds above 0 and below 100000000", "minimum": 0, "above": True, "maximum": 1e8},
}
"""Sections whose keys have one rule."""
_KINDS: dict[str, Kind] = {"int": "whole", "float": "number", "bool": "truth", "str": "text", "Path": "text"}


def keys(section: type) -> Iterator[tuple[Key, str]]:
    """Each key of a section, and its type: ``int``, ``float``, ``bool``, ``str``, ``Path``, ``tuple[str, ...]`` or a section's."""
    for one in fields(section):
        type_ = str(one.type).removesuffix(" | None")
        rule = dict(one.metadata or _UNIFORM.get(section, {}))
        if choices := re.fullmatch(r"Literal\[(.*)\]", type_):
            type_ = "str"
            rule["choices"] = tuple(word.strip("\"' ") for word in choices[1].split(","))
            rule["hint"] = f"one of {', '.join(rule['choices'])}"
        kind = _KINDS.get(type_, "text")
        rule.setdefault("hint", f"write {WORDS[kind]}")
        yield Key(one.name, kind, default=one.default, **rule), type_


def load(named: Path | None) -> ServerConfig:
    """Read the file ``named``, or that of the usual places; ConfigError with one line that names file, line and hint."""
    file = config_file(named)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"{file}: {reason}; hint: name a server.toml with --config") from error
    return _Reader(text, file).config()


class _Reader(TomlReader):
    error = ConfigError

    def __init__(self, text: str, file: Path) -> None:
        super().__init__(text, file, "correct the line")
        self._file, self._folder = file, file.resolve().parent

    def hint_for_name(self, name: str, known: Sequence[str]) -> str:  # noqa: ARG002  as ``TomlReader`` has it
        return f"one of {', '.join(known)}"

    def config(self) -> ServerConfig:
        """The whole."""
        known = (*TABLES, "probes")
        for name in self.content:
            if name not in known:
                raise self.fail((name,), f"unknown section {name!r}", self.hint_for_name(name, known))
        read: dict[str, Any] = {
            name: self._section(kind, self.content.get(name, {}), name) for name, kind in TABLES.items()
        }
        config = ServerConfig(self._file, **read, probes=self._shares(self.content.get("probes", {})))
        for place, what, hint in _faults(config):
            raise self.fail(place, what, hint)
        return config

    def _shares(self, content: object) -> dict[str, Share]:
        shares = self.table(content, ("probes",))
        for name in shares:
            if not valid_name(name):
                what = f"{name!r} is no probe's name"
                raise self.fail(("probes", name), what, "[probes.NAME], as `probe list` has it")
        return {name: self._section(Share, own, "probes", name) for name, own in shares.items()}

    def _section(self, kind: type[_T], content: object, *place: str) -> _T:
        table, where = self.table(content, place), f"[{'.'.join(place)}]"
        known = {key.name: (key, type_) for key, type_ in keys(kind)}
        self.only(table, known, place, where)
        values = self.checked([key for key, type_ in known.values() if type_ in _KINDS], table, place, where)
        for name, (key, type_) in known.items():
            value = values.get(name)
            if type_ == "float" and value is not None:
                values[name] = float(value)
            elif type_ == "Path" and value is not None:
                values[name] = self._folder / value
            elif type_ not in _KINDS:
                values[name] = self._further(type_, table[name], (*place, name)) if name in table else key.default
        return kind(**values)

    def _further(self, type_: str, value: object, place: tuple[str, ...]) -> object:
        """Of a key that is a section or a list of texts."""
        if type_ == "S3Bucket":
            return self._section(S3Bucket, value, *place)
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            what = f"[{'.'.join(place[:-1])}] {place[-1]} is {value!r}"
            raise self.fail(place, what, 'write texts in brackets, as in ["203.0.113.11"]')
        return tuple(value)


# --- What keys have to do with one another ---------------------------------------------------------------------------------

Fault = tuple[Place, str, str]
"""Where, what is wrong, and the hint."""


def _faults(config: ServerConfig) -> Iterator[Fault]:
    """What is wrong between keys of a file whose keys are right by themselves."""
    yield from _listen_faults(config.listen)
    if config.limits.bytes_in_flight < BYTES_IN_FLIGHT_LEAST * config.listen.gateway_processes:
        yield (
            ("limits", "bytes_in_flight"),
            f"[limits] bytes_in_flight is {config.limits.bytes_in_flight}",
            f"{BYTES_IN_FLIGHT_LEAST} or more for each gateway process: one largest request must have room",
        )
    yield from _pages_faults(config.pages)
    yield from _wireguard_faults(config.wireguard)
    yield from _store_faults(config.store)
    mirror, given = config.mirror, [f.name for f in fields(Mirror) if getattr(config.mirror, f.name) is not None]
    for name in ("url", "texts"):
        if given and getattr(mirror, name) is None:
            yield ("mirror",), f"[mirror] needs {name}", "add it, or leave the section out"
    if (mirror.user is None) != (mirror.password_file is None):
        yield ("mirror",), "[mirror] user and password_file belong together", "add the other"


def _listen_faults(listen: Listen) -> Iterator[Fault]:
    ports = sorted(p for f in fields(listen) if f.name.endswith("_port") and (p := getattr(listen, f.name)) is not None)
    if any(a == b for a, b in pairwise(ports)):
        yield ("listen",), "two of the ports in [listen] are the same", "give each its own"
    place, what = ("listen", "further_addresses"), "[listen] further_addresses: "
    hint = f"at most {MOST_ADDRESSES} addresses of this server as probes reach them, each once"
    given = listen.further_addresses
    if len(given) > MOST_ADDRESSES or len(set(given)) < len(given):
        yield place, f"{what}{list(given)}", hint
    for text in given:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            yield place, f"{what}{text!r} is no address", hint
            continue
        if address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local:
            yield place, f"{what}{text} is reached by no probe", hint


def _pages_faults(pages: PageServing) -> Iterator[Fault]:
    place = ("pages", "host")
    try:
        loopback = ipaddress.ip_address(pages.host).is_loopback
    except ValueError:
        yield place, f"[pages] host is {pages.host!r}", "an IP address, as 127.0.0.1"
        return
    if not loopback and not pages.behind_proxy:
        hint = "127.0.0.1, or behind_proxy = true where a reverse proxy asks for a login before it"
        yield place, f"[pages] host is {pages.host}, and whoever reaches it reads all traces", hint


def _wireguard_faults(section: WireGuard) -> Iterator[Fault]:
    network, endpoint = ("wireguard", "network"), ("wireguard", "endpoint")
    if section.network is None:
        if section.endpoint is not None:
            yield endpoint, "[wireguard] endpoint without network", 'add network = "10.87.0.0/16"'
        return
    try:
        room = ipaddress.ip_network(section.network).num_addresses
    except ValueError as error:
        yield network, f"[wireguard] network: {error}", "as 10.87.0.0/16"
        return
    if room < 2 * (HUB_AND_PEOPLE + 1):
        what = f"[wireguard] network {section.network} has {room} addresses, of which {HUB_AND_PEOPLE} are the hub's and people's"
        yield network, what, "a larger one, as 10.87.0.0/16"
    if section.endpoint is None:
        yield network, "[wireguard] network without endpoint", 'add endpoint = "server.example.org:51820"'
        return
    found = re.fullmatch(_ENDPOINT, section.endpoint)
    if found is None or not 1 <= int(found[1]) <= 65535:
        yield endpoint, f"[wireguard] endpoint is {section.endpoint!r}", "HOST:PORT, as server.example.org:51820"


def _store_faults(store: Store) -> Iterator[Fault]:
    running, private = ("url", "user", "password_file"), ("binary", "backup_port")
    for name in running if store.kind == "running" else ():
        if getattr(store, name) is None:
            yield ("store",), f'[store] kind "running" needs {name}', "add it"
    for name in private if store.kind == "running" else running:
        if getattr(store, name) is not None:
            yield ("store", name), f'[store] {name} is not for kind "{store.kind}"', "leave it out"
    if store.backup_port == store.port:
        yield ("store", "backup_port"), "[store] port and backup_port are the same", "give each its own"
