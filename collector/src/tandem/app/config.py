"""The collector's configuration: read, checked key by key, and kept as plain values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tandem.app.config_campaigns import CampaignsConfig
from tandem.app.config_indicator import EPaperConfig, StatusLedConfig, e_paper_config, status_led_config
from tandem.app.config_modem import ModemConfig, PathConfig, RecoveryConfig, recovery_of
from tandem.app.config_paths import PathsReader
from tandem.app.config_round_trip import RoundTripConfig
from tandem.app.config_schema import DEFAULT_SECONDS, REQUIRED_TABLES, SYSCTL_NAME, TABLES
from tandem.app.config_traces import TracesConfig, traces_config
from tandem.app.position_config import PositionConfig, position_config
from tandem.mptcp.steering import Policy
from tandem.schema.manifest import CaptureEnds
from tandem.schema.toml_keys import Key
from tandem.schema.toml_lines import Place, line_of, places
from tandem.spool.spool import DEFAULT_LIMIT_BYTES

__all__ = ["Config", "ConfigError", "ModemConfig", "PathConfig", "load", "parse"]


class ConfigError(ValueError):
    """The configuration cannot be used: one line, ``FILE:LINE: what is wrong; mend: how``."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """URLs and files as in ``config_schema``; files are absolute."""

    gateway: str
    control: str
    measurement: str
    ca_file: Path | None
    token_file: Path


@dataclass(frozen=True, slots=True)
class MobilityConfig:
    """See ``tandem.mobility.settings``."""

    detector: str
    quantity: str
    threshold_db: float
    stop_after_s: float


@dataclass(frozen=True, slots=True)
class RunsConfig:
    """Exactly one of ``seconds`` and ``bytes`` is set. ``primary``: ``random`` or a path's name."""

    on_mobility_start: Literal["sequential", "simultaneous", "off"]
    seconds: float | None
    bytes: int | None
    pause_s: float
    minimum_gap_s: float
    seed: int
    primary: str
    capture: CaptureEnds
    steering: Policy


@dataclass(frozen=True, slots=True)
class CaptureConfig:
    """``budget_bytes`` for all captures on disk together."""

    enabled: bool
    snaplen_bytes: int
    budget_bytes: int


@dataclass(frozen=True, slots=True)
class Config:
    """``file``: where it was read from; ``folder``: the probe's state, absolute; ``city``: in which it measures, by name."""

    file: Path
    probe: str
    folder: Path
    server: ServerConfig
    paths: tuple[PathConfig, ...]
    period_s: float
    mobility: MobilityConfig
    runs: RunsConfig
    capture: CaptureConfig
    drain_s: float
    sysctl: Mapping[str, str | int]
    recovery: RecoveryConfig
    position: PositionConfig | None = None
    """None: mode off."""
    experiments: Path | None = None  # a person's own, beside the package's
    campaigns: CampaignsConfig = field(default_factory=CampaignsConfig)
    traces: TracesConfig = field(default_factory=TracesConfig)
    round_trip: RoundTripConfig = field(default_factory=RoundTripConfig)
    clock: str = "auto"
    """Who is asked for the time: ``clock.reading.SOURCES``."""
    spool_limit_bytes: int = DEFAULT_LIMIT_BYTES
    status_led: StatusLedConfig | None = None
    e_paper: EPaperConfig | None = None
    """None: off."""
    city: str | None = None


def load(file: Path) -> Config:
    """Read and check ``file``; ConfigError for the first thing that is wrong. Opens no other file."""
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(
            f"{file}: {error.strerror}; mend: name the collector's configuration with --config"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 text (byte {error.start}); mend: save it as UTF-8") from error
    return parse(text, file)


def parse(text: str, file: Path) -> Config:
    """Check ``text`` as the content of ``file``, whose folder relative names start from."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_toml_error(file, text, str(error))) from error
    return _Reader(file, content, places(text)).config()


def _toml_error(file: Path, text: str, message: str) -> str:
    what, _, rest = message.partition(" (at ")
    number = rest.partition("line ")[2].partition(",")[0]
    if not number.isdigit():
        number = str(max(1, len(text.splitlines())))
    return f"{file}:{number}: no TOML: {what[:1].lower() + what[1:]}; mend that line"


class _Reader:
    def __init__(self, file: Path, content: dict[str, Any], found: dict[Place, int]) -> None:
        self._file, self._content, self._places = file, content, found

    def _fail(self, place: Place, what: str, mend: str) -> ConfigError:
        number = line_of(self._places, place)
        where = f"{self._file}:{number if number is not None else 1}"
        return ConfigError(f"{where}: {what}; mend: {mend}")

    def config(self) -> Config:
        """The whole."""
        known = (*(t for t in TABLES if "." not in t), "sysctl")
        for name in self._content:
            if name not in known:
                raise self._fail((name,), f"unknown table or key {name!r}", f"known are {', '.join(known)}")
        for name in REQUIRED_TABLES:
            if name not in self._content:
                header = "[[path]]" if name == "path" else f"[{name}]"
                raise ConfigError(f"{self._file}:1: there is no {header}; mend: add it (collector/README.md shows one)")
        here = self._file.resolve().parent
        probe = self._table("probe")
        paths = PathsReader(self._checked, self._fail, here, here / probe["folder"]).paths(self._content["path"])
        flat = {name: self._table(name) for name in TABLES if name.partition(".")[0] not in ("path", "position")}
        runs = self._runs(flat["runs"], [p.name for p in paths])
        position = position_config(
            self._content.get("position", {}), self._checked, self._fail, [p.name for p in paths if p.modem is not None]
        )
        server = flat["server"]
        return Config(
            file=self._file,
            probe=probe["name"],
            folder=here / probe["folder"],
            server=ServerConfig(
                server["gateway"],
                server["control"],
                server["measurement"],
                None if server["ca_file"] is None else here / server["ca_file"],
                here / server["token_file"],
            ),
            paths=tuple(replace(p, gnss=position is not None and position.modem == p.name) for p in paths),
            period_s=float(flat["polling"]["period_s"]),
            mobility=MobilityConfig(**flat["mobility"]),
            runs=runs,
            capture=CaptureConfig(**flat["capture"]),
            drain_s=float(flat["export"]["drain_s"]),
            sysctl=self._sysctl(),
            recovery=recovery_of(flat["recovery"]),
            position=position,
            experiments=None if flat["experiments"]["folder"] is None else here / flat["experiments"]["folder"],
            campaigns=CampaignsConfig(**flat["campaigns"]),
            traces=traces_config(flat["traces"]),
            round_trip=RoundTripConfig(**flat["round_trip"]),
            clock=flat["clock"]["source"],
            spool_limit_bytes=flat["spool"]["limit_bytes"],
            status_led=status_led_config(flat["status_led"], here, self._fail),
            e_paper=e_paper_config(flat["e_paper"], self._fail),
            city=probe["city"],
        )

    def _table(self, name: str) -> dict[str, Any]:
        content = self._content.get(name, {})
        if not isinstance(content, dict):
            raise self._fail((name,), f"{name!r} is no table", f"begin it with [{name}] on a line of its own")
        return self._checked(TABLES[name], content, (name,))

    def _checked(self, keys: tuple[Key, ...], content: dict[str, Any], place: Place) -> dict[str, Any]:
        where = ".".join(str(p) for p in place if isinstance(p, str))
        known = {key.name: key for key in keys}
        for name, value in content.items():
            key = known.get(name)
            if key is None:
                raise self._fail((*place, name), f"unknown key {name!r} in [{where}]", f"known are {', '.join(known)}")
            wrong = key.wrong(value)
            if wrong is not None:
                raise self._fail((*place, name), f"{where}.{name}: {wrong}", key.mend)
        for key in keys:
            if key.required and key.name not in content:
                raise self._fail(place, f"[{where}] has no {key.name!r}", f"add it: {key.mend}")
        return {key.name: content.get(key.name, key.default) for key in keys}

    def _runs(self, values: dict[str, Any], names: list[str]) -> RunsConfig:
        if values["seconds"] is not None and values["bytes"] is not None:
            raise self._fail(("runs", "bytes"), "runs.seconds and runs.bytes are both given", "keep one of them")
        if values["seconds"] is None and values["bytes"] is None:
            values["seconds"] = DEFAULT_SECONDS
        if values["primary"] != "random" and values["primary"] not in names:
            raise self._fail(
                ("runs", "primary"),
                f"runs.primary: {values['primary']!r} is no path",
                f"random, or one of {', '.join(names)}",
            )
        return RunsConfig(**values)

    def _sysctl(self) -> dict[str, str | int]:
        content = self._content.get("sysctl", {})
        if not isinstance(content, dict):
            raise self._fail(("sysctl",), "'sysctl' is no table", "begin it with [sysctl] on a line of its own")
        for name, value in content.items():
            if not SYSCTL_NAME.match(name):
                what = f'sysctl: {name!r} is no name of net.* (a name with dots needs quotes: "net.ipv4.tcp_rmem" = …)'
                raise self._fail(("sysctl", name), what, "only network settings are taken")
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise self._fail(
                    ("sysctl", name),
                    f"sysctl.{name}: {value!r} is neither text nor a whole number",
                    "write it as in sysctl",
                )
        return dict(content)
