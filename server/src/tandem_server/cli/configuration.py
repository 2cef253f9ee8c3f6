"""server.toml: read strictly. What is unknown, of the wrong type or impossible stops the start, with file and line."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from tandem_server.cli.bounds import Bounds
from tandem_server.cli.collector_section import ExpectedCollector
from tandem_server.cli.config_file import config_file
from tandem_server.cli.further_addresses import addresses_fault
from tandem_server.cli.pages_section import PageServing, check_pages
from tandem_server.cli.stop import ConfigError
from tandem_server.cli.store_section import Store, check_store
from tandem_server.cli.trace_configuration import S3Bucket, TraceFiles, traces_fault
from tandem_server.cli.wireguard_section import WireGuard, check_wireguard
from tandem_server.endpoint.sessions import Share
from tandem_server.ledger.states import Tolerances
from tandem_server.registry import valid_name


@dataclass(frozen=True, slots=True)
class Listen:
    """Where the listeners are. ``host`` ``::``: every address of both families, of IPv4 alone where the kernel has no IPv6.
    ``measurement_tls_port``: measurements with TLS, too, on another port; None: none. ``multipath`` ``optional``: go on without
    Multipath TCP when the kernel has none. ``processes`` serve the measurements; 0: as many
    as there are cores. ``gateway_processes`` answer the probes' records. ``further_addresses``: where the measurement listeners
    are reached besides, told to probes for more subflows. ``pages_port``: runs' reports and files for browsers (``[pages]``); None: not
    served."""

    host: str = "::"
    gateway_port: int = 8443
    control_port: int = 8444
    measurement_port: int = 8480
    measurement_tls_port: int | None = None
    multipath: Literal["required", "optional"] = "required"
    processes: int = 0
    gateway_processes: int = 1
    further_addresses: tuple[str, ...] = ()
    pages_port: int | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    """Server certificate and its key, PEM."""

    certificate: Path = Path("tls/server.pem")
    key: Path = Path("tls/server.key")


@dataclass(frozen=True, slots=True)
class Content:
    """Where DASH presentations are (``tandem-server dash build``); need not exist."""

    folder: Path = Path("content")


@dataclass(frozen=True, slots=True)
class RegistryFile:
    """The registry's SQLite file."""

    file: Path = Path("registry.sqlite")


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Where the results are kept that probes hand in with their sessions."""

    folder: Path = Path("results")


@dataclass(frozen=True, slots=True)
class CaptureFiles:
    """Captures at the endpoint, of sessions that ask for one: none unless ``allowed``. ``budget_bytes`` for all on disk together."""

    allowed: bool = False
    folder: Path = Path("captures")
    budget_bytes: int = 2_000_000_000


@dataclass(frozen=True, slots=True)
class OwnSeries:
    """``every_s``: seconds from point to point of the server's own series (docs/reference/ledger.md). ``settle_s``: for how long an hour's
    note of late lines stands unchanged before the hour is made again (docs/reference/ledger.md)."""

    every_s: int = 60
    settle_s: int = 30


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """A whole server.toml; relative paths are made absolute from the file's folder."""

    file: Path
    listen: Listen
    tls: Tls
    store: Store
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


_SECTIONS: dict[str, type] = {
    "listen": Listen,
    "tls": Tls,
    "store": Store,
    "registry": RegistryFile,
    "content": Content,
    "limits": Bounds,
    "results": ResultFiles,
    "capture": CaptureFiles,
    "traces": TraceFiles,
    "states": Tolerances,
    "series": OwnSeries,
    "pages": PageServing,
    "wireguard": WireGuard,
    "collector": ExpectedCollector,
}
BYTES_IN_FLIGHT_LEAST = 3 * 8 * 1024 * 1024


def load(named: Path | None) -> ServerConfig:
    """Read the file ``named``, or that of the usual places; ConfigError with one line that names file, line and mend."""
    file = config_file(named)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"{file}: {reason}; hint: name a server.toml with --config") from error
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line ([0-9]+)", str(error))
        number = line[1] if line else str(text.count("\n") + 1)
        raise ConfigError(f"{file}:{number}: no TOML: {error}; hint: correct the line") from error
    where = _Places(file, text)
    for section in content:
        if section not in (*_SECTIONS, "probes"):
            known = ", ".join((*_SECTIONS, "probes"))
            raise ConfigError(f"{where(section)}: unknown section {section!r}; hint: one of {known}")
    read: dict[str, Any] = {
        name: _section(name, kind, content.get(name, {}), where) for name, kind in _SECTIONS.items()
    }
    config = ServerConfig(file, **read, probes=_shares(content.get("probes", {}), where))
    _check(config, where)
    return config


class _Places:
    """Where a key stands in the file: tomllib does not tell."""

    def __init__(self, file: Path, text: str) -> None:
        self.file, self._lines = file, {"": 1}
        section = ""
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
                section = header[1].strip("\"'")
                self._lines.setdefault(section, number)
            elif key := re.match(r"\s*[\"']?([A-Za-z0-9_-]+)[\"']?\s*=", line):
                self._lines.setdefault(f"{section}.{key[1]}" if section else key[1], number)

    def __call__(self, section: str, key: str | None = None) -> str:
        line = self._lines.get(f"{section}.{key}") if key else None
        return f"{self.file}:{line or self._lines.get(section, 1)}"


def _shares(content: object, where: _Places) -> dict[str, Share]:
    if not isinstance(content, dict):
        raise ConfigError(f"{where('probes')}: probes is no section; hint: write [probes.NAME]")
    shares = {}
    for name, of_probe in content.items():
        section = f"probes.{name}"
        if not valid_name(name):
            raise ConfigError(
                f"{where(section)}: {name!r} is no probe's name; hint: [probes.NAME], as `probe list` has it"
            )
        share = _section(section, Share, of_probe, where)
        assert isinstance(share, Share)  # noqa: S101  (for the type checker: it was made of it)
        for field in fields(Share):
            bound = getattr(share, field.name)
            if bound is not None and bound < 1:
                raise ConfigError(
                    f"{where(section, field.name)}: [{section}] {field.name} is {bound}; hint: a number above 0"
                )
        shares[name] = share
    return shares


def _section(name: str, kind: type, content: object, where: _Places) -> object:
    if not isinstance(content, dict):
        raise ConfigError(f"{where(name)}: {name} is no section; hint: write [{name}]")
    known = {f.name: f.type for f in fields(kind)}
    values: dict[str, Any] = {}
    for key, value in content.items():
        if key not in known:
            raise ConfigError(f"{where(name, key)}: unknown key {key!r} in [{name}]; hint: one of {', '.join(known)}")
        if known[key] == "S3Bucket | None":
            values[key] = _section(f"{name}.{key}", S3Bucket, value, where)
            continue
        values[key] = _value(f"[{name}] {key}", str(known[key]), value, where(name, key))
    section = kind(**values)
    folder = where.file.resolve().parent
    absolute = {f.name: folder / v for f in fields(kind) if isinstance(v := getattr(section, f.name), Path)}
    return kind(**{**values, **absolute})


def _value(what: str, kind: str, value: object, where: str) -> object:
    plain = kind.removesuffix(" | None")
    if choices := re.match(r"Literal\[(.*)\]", plain):
        allowed = [word.strip("\"' ") for word in choices[1].split(",")]
        if value not in allowed:
            raise ConfigError(f"{where}: {what} is {value!r}; hint: one of {', '.join(allowed)}")
        return value
    right = {
        "int": type(value) is int,
        "float": type(value) in (int, float),
        "bool": type(value) is bool,
        "str": isinstance(value, str) and value != "",
        "Path": isinstance(value, str) and value != "",
        "tuple[str, ...]": isinstance(value, list) and all(isinstance(one, str) for one in value),
    }[plain]
    if not right:
        name = {
            "int": "a whole number",
            "float": "a number",
            "bool": "true or false",
            "str": "a text",
            "Path": "a path",
            "tuple[str, ...]": 'texts in brackets, as in ["203.0.113.11"]',
        }[plain]
        raise ConfigError(f"{where}: {what} is {value!r}; hint: write {name}")
    if plain == "Path":
        return Path(str(value))
    if isinstance(value, list):
        return tuple(value)
    return float(str(value)) if plain == "float" else value


def _check(config: ServerConfig, where: _Places) -> None:
    ports = [(s, k) for s, c in (("listen", config.listen), ("store", config.store)) for k in _port_keys(c)]
    for section, key in ports:
        port = getattr(getattr(config, section), key)
        if port is not None and not 1 <= port <= 65535:
            raise ConfigError(f"{where(section, key)}: [{section}] {key} is {port}; hint: a port from 1 to 65535")
    if config.capture.budget_bytes < 1:
        raise ConfigError(
            f"{where('capture', 'budget_bytes')}: [capture] budget_bytes is {config.capture.budget_bytes}; hint: a number above 0"
        )
    if not 0 <= config.listen.processes <= 256:
        raise ConfigError(
            f"{where('listen', 'processes')}: [listen] processes is {config.listen.processes}; hint: 1 to 256, or 0 for one a core"
        )
    if not 2 <= config.series.every_s <= 600:
        raise ConfigError(
            f"{where('series', 'every_s')}: [series] every_s is {config.series.every_s}; hint: 2 to 600 seconds, 60 where alarms watch"
        )
    if not 1 <= config.series.settle_s <= 3600:
        raise ConfigError(
            f"{where('series', 'settle_s')}: [series] settle_s is {config.series.settle_s}; hint: 1 to 3600 seconds"
        )
    if not 1 <= config.listen.gateway_processes <= 64:
        raise ConfigError(
            f"{where('listen', 'gateway_processes')}: [listen] gateway_processes is {config.listen.gateway_processes}; hint: 1 to 64"
        )
    if config.limits.bytes_in_flight < BYTES_IN_FLIGHT_LEAST * config.listen.gateway_processes:
        raise ConfigError(
            f"{where('limits', 'bytes_in_flight')}: [limits] bytes_in_flight is {config.limits.bytes_in_flight}; hint:"
            f" {BYTES_IN_FLIGHT_LEAST} or more for each gateway process: one largest request must have room"
        )
    if (fault := addresses_fault(config.listen.further_addresses)) is not None:
        raise ConfigError(f"{where('listen', 'further_addresses')}: [listen] further_addresses: {fault}")
    if (trace_fault := traces_fault(config.traces)) is not None:
        raise ConfigError(f"{where('traces', trace_fault[0])}: [traces] {trace_fault[1]}")
    mine = [port for key in _port_keys(config.listen) if (port := getattr(config.listen, key)) is not None]
    if len(set(mine)) < len(mine):
        raise ConfigError(f"{where('listen')}: two of the ports in [listen] are the same; hint: give each its own")
    for section, kind in (("limits", Bounds), ("states", Tolerances)):
        for field in fields(kind):
            bound = getattr(getattr(config, section), field.name)
            if not 0 < bound < (1e18 if section == "limits" else 1e8):
                mend = "a number above 0" if section == "limits" else "seconds above 0 and below 100000000"
                raise ConfigError(f"{where(section, field.name)}: [{section}] {field.name} is {bound}; hint: {mend}")
    check_pages(config.pages, functools.partial(where, "pages"))
    check_wireguard(config.wireguard, functools.partial(where, "wireguard"))
    check_store(config.store, functools.partial(where, "store"))


def _port_keys(section: Listen | Store) -> list[str]:
    return [field.name for field in fields(section) if field.name == "port" or field.name.endswith("_port")]
