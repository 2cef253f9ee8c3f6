"""The collector's configuration: ``config.toml`` read and checked, key by key (``config_schema``) and between keys."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tandem.app.config_schema import (
    DEFAULT_SECONDS,
    MANAGED,
    MOST_PATHS,
    MOST_ZONES,
    REQUIRED_TABLES,
    SECTIONS,
    SIM_SECRET,
    SYSCTL_NAME,
    CampaignsConfig,
    CaptureConfig,
    ConnectionConfig,
    EPaperConfig,
    HomeZone,
    MobilityConfig,
    ModemConfig,
    PathConfig,
    PlanConfig,
    PositionConfig,
    RecoveryConfig,
    RoundTripConfig,
    RunsConfig,
    ServerConfig,
    StatusLedConfig,
    TracesConfig,
    key_of,
    keys_of,
)
from tandem.schema.toml_file import Place, TomlReader


class ConfigError(ValueError):
    """The configuration cannot be used: one line, ``FILE:LINE: what is wrong; hint: how``."""


@dataclass(frozen=True, slots=True)
class Config:
    """``file``: where it was read from; ``folder``: the probe's state, absolute; the rest as in ``config_schema``, None where it is off."""

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
    position: PositionConfig | None
    experiments: Path | None
    campaigns: CampaignsConfig
    traces: TracesConfig
    round_trip: RoundTripConfig
    clock: str
    spool_limit_bytes: int
    status_led: StatusLedConfig | None
    e_paper: EPaperConfig | None
    city: str | None

    @property
    def operators(self) -> dict[str, str | None]:
        """By path."""
        return {path.name: path.operator for path in self.paths}


def load(file: Path) -> Config:
    """Read and check ``file``; ConfigError for the first thing that is wrong. Opens no other file."""
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        hint = "name the collector's configuration with --config"
        if isinstance(error, PermissionError):
            hint = "it holds secrets: begin the command with sudo"
        raise ConfigError(f"{file}: {error.strerror}; hint: {hint}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 text (byte {error.start}); hint: save it as UTF-8") from error
    return parse(text, file)


def parse(text: str, file: Path) -> Config:
    """Check ``text`` as the content of ``file``, whose folder relative names start from."""
    return _Reader(text, file).config()


def drivers() -> list[str]:
    """The modem families: the modules of ``tandem.modem.families``, not imported."""
    return sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parents[1] / "modem" / "families")]))


class _Reader(TomlReader):
    file: Path
    error = ConfigError

    def __init__(self, text: str, file: Path) -> None:
        super().__init__(text, file, "correct that line")
        self._folder = self._here = file.resolve().parent

    def named(self, where: str, name: str) -> str:
        return f"{where.strip('[]')}.{name}"

    def config(self) -> Config:
        known = (*(t for t in SECTIONS if "." not in t), "sysctl")
        for name in self.content:
            if name not in known:
                raise self.fail((name,), f"unknown table or key {name!r}", f"known are {', '.join(known)}")
        for name in REQUIRED_TABLES:
            if name not in self.content:
                header = "[[path]]" if name == "path" else f"[{name}]"
                raise self.fail((), f"there is no {header}", "add it (docs/reference/configuration.md shows one)")
        probe = self._table("probe")
        self._folder = probe["folder"]
        paths = self._paths(self.content["path"])
        runs = self._runs(self._table("runs"), [p.name for p in paths])
        position = self._position([p.name for p in paths if p.modem is not None])
        alone = {
            name: SECTIONS[name](**self._table(name))
            for name in ("server", "mobility", "capture", "recovery", "campaigns", "traces", "round_trip")
        }
        return Config(
            file=self.file,
            probe=probe["name"],
            folder=self._folder,
            paths=tuple(replace(p, gnss=position is not None and position.modem == p.name) for p in paths),
            period_s=float(self._table("polling")["period_s"]),
            runs=runs,
            drain_s=float(self._table("export")["drain_s"]),
            sysctl=self._sysctl(),
            position=position,
            experiments=self._table("experiments")["folder"],
            clock=self._table("clock")["source"],
            spool_limit_bytes=self._table("spool")["limit_bytes"],
            status_led=self._status_led(StatusLedConfig(**self._table("status_led"))),
            e_paper=self._e_paper(EPaperConfig(**self._table("e_paper"))),
            city=probe["city"],
            **alone,
        )

    def _table(self, name: str) -> dict[str, Any]:
        return self._checked(name, self.content.get(name, {}), (name,))

    def _checked(self, table: str, content: object, place: Place, within: Sequence[str] = ()) -> dict[str, Any]:
        """The values of a table by key, with defaults. ``within``: tables inside of it, which are left out."""
        where = f"[{'.'.join(str(p) for p in place if isinstance(p, str))}]"
        known = keys_of(SECTIONS[table])
        given = {name: value for name, value in self.table(content, place).items() if name not in within}
        self.only(given, known, place, where)
        self.checked([key_of(one) for one in known.values()], given, place, where)
        values: dict[str, Any] = {}
        for name, one in known.items():
            taken: Any = one.metadata.get("take", lambda text: text)(given[name]) if name in given else one.default
            # Relative names start from the file's folder.
            is_file = str(one.type).startswith("Path") and taken is not None
            values[name] = self._here / taken if is_file else taken
        return values

    def _tables(self, listed: object, place: Place, most: int, what: str, header: str) -> list[dict[str, Any]]:
        """A list of at most so many tables, not checked."""
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise self.fail(place, f"{str(place[-1])!r} is no list of tables", f"begin each {header}")
        if len(listed) > most:
            raise self.fail((*place, most), f"{len(listed)} {what}", f"at most {most}")
        return listed

    # --- paths ---------------------------------------------------------------------------------------------------------

    def _paths(self, listed: object) -> tuple[PathConfig, ...]:
        paths: list[PathConfig] = []
        tables = self._tables(listed or None, ("path",), MOST_PATHS, "paths", "path with [[path]]")
        for index, content in enumerate(tables):
            path = self._path(content, ("path", index))
            for other in paths:
                self._same(path, other, ("path", index))
            paths.append(path)
        return tuple(paths)

    def _path(self, content: dict[str, Any], place: Place) -> PathConfig:
        values = self._checked("path", content, place, ("modem", "plan"))
        modem = self._modem(content["modem"], (*place, "modem"), values) if "modem" in content else None
        if (values["interface"] is None) == (values["usb"] is None):
            what = "has neither 'interface' nor 'usb'" if values["usb"] is None else "has both 'interface' and 'usb'"
            hint = "give one: the interface's name, or the USB place of its modem"
            raise self.fail((*place, *(() if values["usb"] is None else ("usb",))), f"[path] {what}", hint)
        plan = None
        if "plan" in content:
            plan = PlanConfig(**self._checked("path.plan", content["plan"], (*place, "plan")))
        return PathConfig(**values, modem=modem, plan=plan)

    def _same(self, path: PathConfig, other: PathConfig, place: Place) -> None:
        for what in ("name", "interface", "usb"):
            mine = getattr(path, what)
            if mine is not None and getattr(other, what) == mine:
                raise self.fail((*place, what), f"{what} {mine!r} is another path's already", "give each path its own")
        for what in ("port", "usb"):
            mine = getattr(path.modem, what, None)
            # Sticks of one kind have the same web address; their interfaces tell them apart.
            if mine is not None and mine == getattr(other.modem, what, None) and "://" not in mine:
                within = (*place, "modem", what)
                raise self.fail(within, f"{what} {mine!r} is another path's already", "give each its own")

    def _modem(self, content: dict[str, Any], place: Place, path: dict[str, Any]) -> ModemConfig:
        """The modem of a path, whose checked values are ``path``: a modem's place tells where its network function is, and the other
        way round."""
        values = self._checked("path.modem", content, place, ("connection",))
        if values["port"] is None and values["usb"] is None and path["usb"] is not None:
            values["usb"] = path["usb"].partition(":")[0]
        if path["interface"] is None and path["usb"] is None and values["usb"] is not None:
            path["usb"] = values["usb"].partition(":")[0]
        modem = ModemConfig(**values, sim_secret=self._folder / SIM_SECRET)
        if (modem.port is None) == (modem.usb is None):
            what = "[path.modem] has neither 'port' nor 'usb'" if modem.port is None else "both 'port' and 'usb'"
            raise self.fail(place, what, 'name one: port = "/dev/ttyUSB2", or usb = "1-1.2"')
        connection = content.get("connection")
        managed = (modem.port or "").startswith(MANAGED)
        if connection is not None and modem.port is not None and not managed:
            what = "path.modem.connection is for modems that ModemManager has, which knows them by their place"
            hint = 'write usb = "USB-PATH" or port = "modemmanager:USB-PATH", or leave the table out'
            raise self.fail((*place, "connection"), what, hint)
        if modem.port == MANAGED:
            what = f"path.modem.port: {modem.port!r} names no modem"
            raise self.fail((*place, "port"), what, "as in modemmanager:1-1.2")
        if managed and modem.driver != "auto":
            what = "path.modem.driver: a modem of ModemManager has no driver of ours"
            raise self.fail((*place, "driver"), what, "leave it out")
        families = ("auto", *drivers())
        if modem.driver not in families:
            what = f"path.modem.driver: there is no driver {modem.driver!r}"
            raise self.fail((*place, "driver"), what, f"known are {', '.join(families)}")
        if connection is None:
            return modem
        values = self._checked("path.modem.connection", connection, (*place, "connection"))
        return replace(modem, connection=ConnectionConfig(**values, tried=self._folder / "sim"))

    # --- other tables whose keys depend on one another -------------------------------------------------------------------

    def _runs(self, values: dict[str, Any], names: list[str]) -> RunsConfig:
        if values["seconds"] is not None and values["bytes"] is not None:
            raise self.fail(("runs", "bytes"), "runs.seconds and runs.bytes are both given", "keep one of them")
        if values["seconds"] is None and values["bytes"] is None:
            values["seconds"] = DEFAULT_SECONDS
        if values["primary"] != "random" and values["primary"] not in names:
            raise self.fail(
                ("runs", "primary"),
                f"runs.primary: {values['primary']!r} is no path",
                f"random, or one of {', '.join(names)}",
            )
        return RunsConfig(**values)

    def _position(self, modems: Sequence[str]) -> PositionConfig | None:
        """None when the mode is off. ``modems``: names of paths with a modem."""
        place: Place = ("position",)
        content = self.content.get("position", {})
        values = self._checked("position", content, place, ("home_zone",))
        zones = self._tables(
            content.get("home_zone", []),
            (*place, "home_zone"),
            MOST_ZONES,
            "home zones",
            "zone with [[position.home_zone]]",
        )
        checked = [
            HomeZone(**self._checked("position.home_zone", zone, (*place, "home_zone", number)))
            for number, zone in enumerate(zones)
        ]
        source = values["source"]
        for name in ("device", "modem"):
            if source == name and values[name] is None:
                raise self.fail((*place, "source"), f"[position] has no {name!r}", f"add it: source is {source!r}")
            if source != name and values[name] is not None:
                what = f"position.{name} is given, but source is {source!r}"
                raise self.fail((*place, name), what, f'source = "{name}"')
        if values["modem"] is not None and values["modem"] not in modems:
            what = f"position.modem: {values['modem']!r} is no path with a modem"
            raise self.fail((*place, "modem"), what, f"known: {', '.join(modems) or 'none has one'}")
        return None if values["mode"] == "off" else PositionConfig(**values, zones=tuple(checked))

    def _status_led(self, led: StatusLedConfig) -> StatusLedConfig | None:
        """None when it is off."""
        if led.only is not None and led.given:
            first = next(iter(led.given))
            what = f"status_led.{first} and status_led.only are both given"
            raise self.fail(("status_led", first), what, "keep one of them")
        return led if led.enabled else None

    def _e_paper(self, paper: EPaperConfig) -> EPaperConfig | None:
        """None when it is off."""
        taken: dict[int, str] = {}
        for name in ("data_command", "reset", "busy"):
            line = getattr(paper, name)
            other = taken.setdefault(line, name)
            if other != name:
                given = other if line == getattr(EPaperConfig(), name) else name
                what = f"e_paper.{other} and {name} are both GPIO {line}"
                raise self.fail(("e_paper", given), what, "one GPIO each")
        return paper if paper.enabled else None

    def _sysctl(self) -> dict[str, str | int]:
        content = self.table(self.content.get("sysctl", {}), ("sysctl",))
        for name, value in content.items():
            if not SYSCTL_NAME.match(name):
                what = f'sysctl: {name!r} is no name of net.* (a name with dots needs quotes: "net.ipv4.tcp_rmem" = …)'
                raise self.fail(("sysctl", name), what, "only network settings are taken")
            if isinstance(value, bool) or not isinstance(value, str | int):
                what = f"sysctl.{name}: {value!r} is neither text nor a whole number"
                raise self.fail(("sysctl", name), what, "write it as in sysctl")
        return dict(content)
