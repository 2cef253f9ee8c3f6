"""The collector's configuration: read, checked key by key against ``config_schema``, and kept as plain values."""

from __future__ import annotations

import pkgutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tandem.app.config_schema import (
    DEFAULT_SECONDS,
    MANAGED,
    MOST_PATHS,
    MOST_ZONES,
    NIGHT,
    RECOVERY_STEPS,
    REQUIRED_TABLES,
    SYSCTL_NAME,
    TABLES,
)
from tandem.indicator.lamp import NAMES, Leds
from tandem.mptcp.steering import Policy
from tandem.schema.manifest import CaptureEnds
from tandem.schema.status_led import CHANNELS
from tandem.schema.toml_file import Place, line_of, places
from tandem.spool.spool import DEFAULT_LIMIT_BYTES

SIM_SECRET = "sim.secret"  # noqa: S105 - a file's name, in the probe's folder
"""What the hashes of SIMs are made with; made when it is first needed."""

UNTOLD_PLAN_BYTES, LONGEST_MONTH = 10_000_000_000, 31

QUESTION_BYTES = 2 * (20 + 8 + 72)
"""A round trip's question and answer on the wire, headers of IPv4 and UDP counted; with IPv6 40 more."""
RECORD_BYTES = 44
"""A round trip's record on its way to the server: what it adds to a second's gzipped batch (tests/bench/bench_round_trips.py)."""


class ConfigError(ValueError):
    """The configuration cannot be used: one line, ``FILE:LINE: what is wrong; hint: how``."""


# ---------------------------------------------------------------------------------------------------------------------
# Values.


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """URLs and files as in ``config_schema``; files are absolute."""

    gateway: str
    control: str
    measurement: str
    ca_file: Path | None
    token_file: Path


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """See ``tandem.modem.mm_poller.ConnectionSettings``; files are absolute, ``tried`` is in the probe's folder."""

    apn: str
    tried: Path
    pin_file: Path | None
    roaming: bool
    user: str | None
    password_file: Path | None
    ip_type: str


@dataclass(frozen=True, slots=True)
class ModemConfig:
    """Exactly one of ``port`` (device, link to one, a stick's ``http://ADDRESS``, or ``modemmanager:`` and a USB or sysfs path) and
    ``usb`` (its place) is set; ``driver``: a family's name or ``auto``; ``sim``: the hash of the SIM that must be in it, made with
    the secret in ``sim_secret``; ``connection``: kept up through ModemManager, None when that is somebody else's business."""

    port: str | None
    driver: str
    usb: str | None
    sim: str | None
    sim_secret: Path
    connection: ConnectionConfig | None = None


@dataclass(frozen=True, slots=True)
class PlanConfig:
    """``bytes``: both ways, of one period. A period begins at 00:00 UTC of ``reset_day``, in a month without that day on its last.
    ``warn_share``: the share of ``bytes`` above which the forecast for the next reset is warned of."""

    bytes: int
    reset_day: int
    warn_share: float


def day_share(plan_bytes: int) -> int:
    """What a SIM may carry a day, where only its plan is known."""
    return plan_bytes // LONGEST_MONTH


@dataclass(frozen=True, slots=True)
class PathConfig:
    """A path; either ``interface`` or ``usb``, the place of its modem, is set; ``modem`` None for Wi-Fi and Ethernet; ``gateway`` None
    on point-to-point interfaces, or to take the interface's own; ``gnss``: its modem's GNSS is the position's source;
    ``plan``: of its SIM, None when nobody told it; ``metered``: whether its bytes cost, None: where there is a modem or a plan;
    ``day_bytes``: what its SIM may carry a day, None when nobody told it."""

    name: str
    operator: str | None
    interface: str | None
    usb: str | None
    gateway: str | None
    address: str | None
    modem: ModemConfig | None
    gnss: bool = False
    plan: PlanConfig | None = None
    metered: bool | None = None
    day_bytes: int | None = None

    @property
    def is_metered(self) -> bool:
        """Whether what it carries is paid for."""
        return self.metered if self.metered is not None else self.modem is not None or self.plan is not None

    @property
    def day_limit_bytes(self) -> int | None:
        """What it may carry a day (UTC), both ways; what nobody told is a day's part of the plan, or of one of 10 GB. None: no limit."""
        if self.day_bytes is not None or not self.is_metered:
            return self.day_bytes
        return day_share(UNTOLD_PLAN_BYTES if self.plan is None else self.plan.bytes)


@dataclass(frozen=True, slots=True)
class RecoveryConfig:
    """See ``tandem.modem.recovery.RecoverySettings``."""

    enabled: bool
    after_s: float
    steps: tuple[str, ...]
    longest_back_off_s: float


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


@dataclass(frozen=True, slots=True, repr=False)
class HomeZone:
    """A circle that no position leaves. It has no repr: no log shall hold one."""

    latitude_deg: float
    longitude_deg: float
    radius_m: float


@dataclass(frozen=True, slots=True)
class PositionConfig:
    """Of ``device`` and ``modem`` (a path's name) at most one is set, as ``source`` says."""

    mode: Literal["coarse", "full"]
    source: Literal["gpsd", "device", "modem"]
    host: str
    port: int
    device: str | None
    modem: str | None
    grid_deg: float
    lost_after_s: float
    zones: tuple[HomeZone, ...]


@dataclass(frozen=True, slots=True)
class CampaignsConfig:
    """Of those that the server pushes. ``from_server``: whether they are run; ``ask_every_s``: how often the server is asked for them."""

    from_server: bool = True
    ask_every_s: float = 300.0


@dataclass(frozen=True, slots=True)
class TracesConfig:
    """When, where and how fast captures and other files of runs go to the server. ``over``: ``unmetered`` is Wi-Fi and Ethernet only.
    ``night``: minutes of the local day at which it begins and ends, None: at any time; ``metered_bytes_per_day``: for each metered path,
    headers included; ``keep``: what becomes of a file that the server has."""

    enabled: bool = True
    over: Literal["unmetered", "any"] = "unmetered"
    night: tuple[int, int] | None = (60, 300)
    still_for_s: float = 7200.0
    rate_bit_per_s: int = 10_000_000
    metered_bytes_per_day: int = 50_000_000
    plan_share: float = 0.5
    encoding: Literal["gzip", "identity"] = "gzip"
    keep: Literal["while_room", "until_received"] = "while_room"
    free_bytes: int = 500_000_000


@dataclass(frozen=True, slots=True)
class RoundTripConfig:
    """``period_s``: between instants at which all paths are asked."""

    enabled: bool = False
    period_s: float = 1.0

    @property
    def day_bytes(self) -> int:
        """Of one path, both ways, while nothing pauses it."""
        return round(86_400 / self.period_s * QUESTION_BYTES)

    @property
    def records_day_bytes(self) -> int:
        """Of one path's records, over whichever path the uploads take."""
        return round(86_400 / self.period_s * RECORD_BYTES)


@dataclass(frozen=True, slots=True)
class StatusLedConfig:
    """Which of the kernel's LEDs make the lamp."""

    leds: Leds


@dataclass(frozen=True, slots=True)
class EPaperConfig:
    """``call``: whom to call, empty when nobody is named; the GPIOs are lines of ``gpio``."""

    call: str
    spi: str
    gpio: str
    data_command: int
    reset: int
    busy: int


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


# ---------------------------------------------------------------------------------------------------------------------
# The loader.


def load(file: Path) -> Config:
    """Read and check ``file``; ConfigError for the first thing that is wrong. Opens no other file."""
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(
            f"{file}: {error.strerror}; hint: name the collector's configuration with --config"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 text (byte {error.start}); hint: save it as UTF-8") from error
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
    return f"{file}:{number}: no TOML: {what[:1].lower() + what[1:]}; hint: correct that line"


def drivers() -> list[str]:
    """The modem families: the modules of ``tandem.modem.families``, not imported."""
    return sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parents[1] / "modem" / "families")]))


class _Reader:
    def __init__(self, file: Path, content: dict[str, Any], found: dict[Place, int]) -> None:
        self._file, self._content, self._places = file, content, found
        self._here = file.resolve().parent
        self._folder = self._here

    def _fail(self, place: Place, what: str, mend: str) -> ConfigError:
        number = line_of(self._places, place)
        return ConfigError(f"{self._file}:{number if number is not None else 1}: {what}; hint: {mend}")

    def _file_of(self, name: str | None) -> Path | None:
        """Relative names start from the configuration's folder."""
        return None if name is None else self._here / name

    def config(self) -> Config:
        """The whole."""
        known = (*(t for t in TABLES if "." not in t), "sysctl")
        for name in self._content:
            if name not in known:
                raise self._fail((name,), f"unknown table or key {name!r}", f"known are {', '.join(known)}")
        for name in REQUIRED_TABLES:
            if name not in self._content:
                header = "[[path]]" if name == "path" else f"[{name}]"
                raise ConfigError(
                    f"{self._file}:1: there is no {header}; hint: add it (docs/contributing/collector.md)"
                )
        probe = self._table("probe")
        self._folder = self._here / probe["folder"]
        paths = self._paths(self._content["path"])
        flat = {name: self._table(name) for name in TABLES if name.partition(".")[0] not in ("path", "position")}
        runs = self._runs(flat["runs"], [p.name for p in paths])
        position = self._position([p.name for p in paths if p.modem is not None])
        server = flat["server"]
        return Config(
            file=self._file,
            probe=probe["name"],
            folder=self._folder,
            server=ServerConfig(
                **{
                    **server,
                    "ca_file": self._file_of(server["ca_file"]),
                    "token_file": self._here / server["token_file"],
                }
            ),
            paths=tuple(replace(p, gnss=position is not None and position.modem == p.name) for p in paths),
            period_s=float(flat["polling"]["period_s"]),
            mobility=MobilityConfig(**flat["mobility"]),
            runs=runs,
            capture=CaptureConfig(**flat["capture"]),
            drain_s=float(flat["export"]["drain_s"]),
            sysctl=self._sysctl(),
            recovery=self._recovery(flat["recovery"]),
            position=position,
            experiments=self._file_of(flat["experiments"]["folder"]),
            campaigns=CampaignsConfig(**flat["campaigns"]),
            traces=self._traces(flat["traces"]),
            round_trip=RoundTripConfig(**flat["round_trip"]),
            clock=flat["clock"]["source"],
            spool_limit_bytes=flat["spool"]["limit_bytes"],
            status_led=self._status_led(flat["status_led"]),
            e_paper=self._e_paper(flat["e_paper"]),
            city=probe["city"],
        )

    def _table(self, name: str) -> dict[str, Any]:
        return self._checked(name, self._content.get(name, {}), (name,))

    def _checked(self, table: str, content: object, place: Place, within: Sequence[str] = ()) -> dict[str, Any]:
        """The keys of a table by name, with their defaults. ``within``: tables inside of it, which are left out."""
        if not isinstance(content, dict):
            own = f"[{table}]" if len(place) > 1 else f"[{table}] on a line of its own"
            raise self._fail(place, f"{str(place[-1])!r} is no table", f"begin it with {own}")
        where = ".".join(str(p) for p in place if isinstance(p, str))
        known = {key.name: key for key in TABLES[table]}
        given = {name: value for name, value in content.items() if name not in within}
        for name, value in given.items():
            key = known.get(name)
            if key is None:
                raise self._fail((*place, name), f"unknown key {name!r} in [{where}]", f"known are {', '.join(known)}")
            wrong = key.wrong(value)
            if wrong is not None:
                raise self._fail((*place, name), f"{where}.{name}: {wrong}", key.hint)
        for key in known.values():
            if key.required and key.name not in given:
                raise self._fail(place, f"[{where}] has no {key.name!r}", f"add it: {key.hint}")
        return {name: given.get(name, key.default) for name, key in known.items()}

    def _tables(self, listed: object, place: Place, most: int, what: str, header: str) -> list[dict[str, Any]]:
        """A list of at most so many tables, not checked."""
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise self._fail(place, f"{str(place[-1])!r} is no list of tables", f"begin each {header}")
        if len(listed) > most:
            raise self._fail((*place, most), f"{len(listed)} {what}", f"at most {most}")
        return listed

    # --- paths ---------------------------------------------------------------------------------------------------------

    def _paths(self, listed: object) -> tuple[PathConfig, ...]:
        """In the file's order."""
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
        for name in ("modem", "plan"):
            if name in content and not isinstance(content[name], dict):
                raise self._fail((*place, name), f"{name!r} is no table", f"begin it with [path.{name}]")
        modem = self._modem(content["modem"], (*place, "modem"), values) if "modem" in content else None
        if (values["interface"] is None) == (values["usb"] is None):
            what = "has neither 'interface' nor 'usb'" if values["usb"] is None else "has both 'interface' and 'usb'"
            mend = "give one: the interface's name, or the USB place of its modem"
            raise self._fail((*place, *(() if values["usb"] is None else ("usb",))), f"[path] {what}", mend)
        plan = None
        if "plan" in content:
            plan = PlanConfig(**self._checked("path.plan", content["plan"], (*place, "plan")))
        return PathConfig(**values, modem=modem, plan=plan)

    def _same(self, path: PathConfig, other: PathConfig, place: Place) -> None:
        for what in ("name", "interface", "usb"):
            mine = getattr(path, what)
            if mine is not None and getattr(other, what) == mine:
                raise self._fail((*place, what), f"{what} {mine!r} is another path's already", "give each path its own")
        for what in ("port", "usb"):
            mine = getattr(path.modem, what, None)
            # Sticks of one kind have the same web address; their interfaces tell them apart.
            if mine is not None and mine == getattr(other.modem, what, None) and "://" not in mine:
                within = (*place, "modem", what)
                raise self._fail(within, f"{what} {mine!r} is another path's already", "give each its own")

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
            raise self._fail(place, what, 'name one: port = "/dev/ttyUSB2", or usb = "1-1.2"')
        connection = content.get("connection")
        wrong = _misfit(modem.port or "", modem.driver, connection is not None)
        if wrong is not None:
            raise self._fail((*place, wrong[0]), wrong[1], wrong[2])
        families = ("auto", *drivers())
        if modem.driver not in families:
            what = f"path.modem.driver: there is no driver {modem.driver!r}"
            raise self._fail((*place, "driver"), what, f"known are {', '.join(families)}")
        if connection is None:
            return modem
        values = self._checked("path.modem.connection", connection, (*place, "connection"))
        files = {name: self._file_of(values[name]) for name in ("pin_file", "password_file")}
        return replace(modem, connection=ConnectionConfig(**{**values, **files, "tried": self._folder / "sim"}))

    # --- other tables whose keys depend on one another -------------------------------------------------------------------

    def _recovery(self, values: dict[str, Any]) -> RecoveryConfig:
        """The ladder's order is its own, not the file's."""
        given = [step.strip() for step in values["steps"].split(",")]
        return RecoveryConfig(**{**values, "steps": tuple(step for step in RECOVERY_STEPS if step in given)})

    def _traces(self, values: dict[str, Any]) -> TracesConfig:
        found = NIGHT.match(values["night"])
        night = None if found is None else (int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4]))
        return TracesConfig(**{**values, "night": night})

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

    def _position(self, modems: Sequence[str]) -> PositionConfig | None:
        """None when the mode is off. ``modems``: names of paths with a modem."""
        place: Place = ("position",)
        content = self._content.get("position", {})
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
                raise self._fail((*place, "source"), f"[position] has no {name!r}", f"add it: source is {source!r}")
            if source != name and values[name] is not None:
                what = f"position.{name} is given, but source is {source!r}"
                raise self._fail((*place, name), what, f'source = "{name}"')
        if values["modem"] is not None and values["modem"] not in modems:
            what = f"position.modem: {values['modem']!r} is no path with a modem"
            raise self._fail((*place, "modem"), what, f"known: {', '.join(modems) or 'none has one'}")
        return None if values["mode"] == "off" else PositionConfig(**values, zones=tuple(checked))

    def _status_led(self, values: dict[str, Any]) -> StatusLedConfig | None:
        """None when it is off."""
        given = {channel: values[channel] for channel in CHANNELS if values[channel] is not None}
        if values["only"] is not None and given:
            first = next(iter(given))
            what = f"status_led.{first} and status_led.only are both given"
            raise self._fail(("status_led", first), what, "keep one of them")
        if not values["enabled"]:
            return None
        return StatusLedConfig(Leds(self._here / values["folder"], {**NAMES, **given}, values["only"]))

    def _e_paper(self, values: dict[str, Any]) -> EPaperConfig | None:
        """None when it is off."""
        defaults = {key.name: key.default for key in TABLES["e_paper"]}
        taken: dict[int, str] = {}
        for name in ("data_command", "reset", "busy"):
            other = taken.setdefault(values[name], name)
            if other != name:
                given = name if values[name] != defaults[name] else other
                what = f"e_paper.{other} and {name} are both GPIO {values[name]}"
                raise self._fail(("e_paper", given), what, "one GPIO each")
        if not values["enabled"]:
            return None
        rest = {name: value for name, value in values.items() if name != "enabled"}
        return EPaperConfig(**{**rest, "call": values["call"] or ""})

    def _sysctl(self) -> dict[str, str | int]:
        content = self._content.get("sysctl", {})
        if not isinstance(content, dict):
            raise self._fail(("sysctl",), "'sysctl' is no table", "begin it with [sysctl] on a line of its own")
        for name, value in content.items():
            if not SYSCTL_NAME.match(name):
                what = f'sysctl: {name!r} is no name of net.* (a name with dots needs quotes: "net.ipv4.tcp_rmem" = …)'
                raise self._fail(("sysctl", name), what, "only network settings are taken")
            if isinstance(value, bool) or not isinstance(value, str | int):
                what = f"sysctl.{name}: {value!r} is neither text nor a whole number"
                raise self._fail(("sysctl", name), what, "write it as in sysctl")
        return dict(content)


def _misfit(port: str, driver: str, connected: bool) -> tuple[str, str, str] | None:
    """What in a modem's table does not go together: the key, what is wrong, the mend. ``port``: empty where a place is given."""
    if not port.startswith(MANAGED):
        if not connected or not port:
            return None
        what = "path.modem.connection is for modems that ModemManager has, which knows them by their place"
        return "connection", what, 'write usb = "USB-PATH" or port = "modemmanager:USB-PATH", or leave the table out'
    if not port.removeprefix(MANAGED):
        return "port", f"path.modem.port: {port!r} names no modem", "as in modemmanager:1-1.2"
    if driver != "auto":
        return "driver", "path.modem.driver: a modem of ModemManager has no driver of ours", "leave it out"
    return None
