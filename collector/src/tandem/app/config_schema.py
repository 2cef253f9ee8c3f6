"""``config.toml``: every key once, as a field with its type, default, range and hint; the values that come of it. Touches no hardware, no
network, no file. A text of the file that is another value here has ``take``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from tandem.export.clock import SOURCES
from tandem.indicator.lamp import CLASS, NAMES, Leds
from tandem.mptcp.steering import POLICIES, Policy
from tandem.schema.line_protocol import tag_fault
from tandem.schema.manifest import CAPTURE_ENDS, CaptureEnds
from tandem.schema.status_led import CHANNELS
from tandem.schema.toml_file import Key, Kind
from tandem.spool.spool import DEFAULT_LIMIT_BYTES

MANAGED = "modemmanager:"
"""Begins a port that is a modem of ModemManager: its USB path or sysfs path follows."""
SIM_SECRET = "sim.secret"  # noqa: S105 - a file's name, in the probe's folder
"""What the hashes of SIMs are made with; made when it is first needed."""
RECOVERY_STEPS = ("at", "session", "cfun", "reboot", "usb", "power")
"""In the order of the ladder, whatever the order in the file."""
NIGHT_OFF = "off"
SYSCTL_NAME = re.compile(r"net(\.[A-Za-z0-9_-]+)+\Z")
DEFAULT_SECONDS = 8.0
"""A run's length when neither ``seconds`` nor ``bytes`` is given."""
MOST_PATHS = 8
"""As many as the kernel takes Multipath TCP endpoints."""
MOST_ZONES = 20
LONGEST_CALL = 40
UNTOLD_PLAN_BYTES, LONGEST_MONTH = 10_000_000_000, 31
QUESTION_BYTES = 2 * (20 + 8 + 72)
"""A round trip's question and answer on the wire, headers of IPv4 and UDP counted; with IPv6 40 more."""
RECORD_BYTES = 44
"""A round trip's record on its way to the server: what it adds to a second's gzipped batch (tests/bench/bench_round_trips.py)."""

# ---------------------------------------------------------------------------------------------------------------------
# What a text may be: each returns what is wrong with it, None when nothing.

Check = Callable[[str], str | None]


def _matching(pattern: str, what: str) -> Check:
    compiled = re.compile(pattern)
    return lambda value: None if compiled.fullmatch(value) else f"{value!r} is no {what}"


_name = _matching(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", "name")
_probe = _matching(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", "probe's name")
"""As the server takes names (``tandem-server probe add``): another would have every manifest refused."""
_interface = _matching(r"(?!\.{1,2}$)[^\s/:]{1,15}", "interface's name")
_usb = _matching(r"[0-9]{1,4}-[0-9]{1,3}(?:\.[0-9]{1,3}){0,6}(?::[0-9]{1,3}\.[0-9]{1,3})?", "USB path")
"""As sysfs names it: bus, ports, and one of the device's interfaces where it has several of a kind."""
_sim = _matching(r"[0-9a-f]{24}", "hash of 24 hexadecimal digits")
_led = _matching(r"[A-Za-z0-9_-][A-Za-z0-9:._-]{0,62}", "name of an LED")
_device = _matching(r"/dev/.+", "device")


def _operator(value: str) -> str | None:
    """As the endpoint takes it, and line protocol can carry it."""
    return tag_fault(value) if len(value) <= 64 else f"{value!r} is longer than 64"


def _address(value: str) -> str | None:
    try:
        ip_address(value)
    except ValueError:
        return f"{value!r} is no {'IPv6' if ':' in value else 'IPv4'} address"
    return None


def _url(*schemes: str) -> Check:
    form = " or ".join(f"{scheme}://HOST:PORT" for scheme in schemes)

    def check(value: str) -> str | None:
        try:
            parts = urlsplit(value)
            good = parts.scheme in schemes and bool(parts.hostname) and parts.path in ("", "/") and not parts.query
            good = good and parts.port != 0
        except ValueError:
            good = False
        return None if good else f"{value!r} is not of the form {form}"

    return check


def _port(value: str) -> str | None:
    return _url("http")(value) if "://" in value else None


def _steps(value: str) -> str | None:
    wrong = [step for part in value.split(",") if (step := part.strip()) not in RECOVERY_STEPS]
    return f"{wrong[0]!r} is no step of the recovery ladder" if wrong else None


def _ladder(value: str) -> tuple[str, ...]:
    given = [step.strip() for step in value.split(",")]
    return tuple(step for step in RECOVERY_STEPS if step in given)


_NIGHT = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])\Z")


def _night(value: str) -> str | None:
    found = _NIGHT.match(value)
    if found is None:
        return None if value == NIGHT_OFF else f"{value!r} is no time of day"
    return f"{value!r} begins when it ends" if found[1] + found[2] == found[3] + found[4] else None


def _minutes(value: str) -> tuple[int, int] | None:
    found = _NIGHT.match(value)
    return None if found is None else (int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4]))


def _call(value: str) -> str | None:
    return None if len(value) <= LONGEST_CALL else f"{len(value)} letters are more than the paper has room for"


# ---------------------------------------------------------------------------------------------------------------------
# Keys as fields of a ``toml_file.Key``. Without a default a key is required. ``written``: a default as the file has
# it, where the value is another; ``take``: the value of a text of the file.


def _text(hint: str, default: object = MISSING, check: Check | None = None, **more: Any) -> Any:  # noqa: ANN401 a field
    return field(default=default, metadata={"hint": hint, "check": check, **more})


def _one_of(hint: str, default: str, choices: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 a field
    """``choices``: else those that ``hint`` lists."""
    return field(default=default, metadata={"hint": hint, "choices": choices or tuple(re.split(", | or ", hint))})


def _number(hint: str, default: object, low: float, high: float, **more: Any) -> Any:  # noqa: ANN401 a field
    return field(default=default, metadata={"hint": hint, "minimum": low, "maximum": high, **more})


def _truth(default: bool | None, hint: str = "true or false") -> Any:  # noqa: ANN401 a field
    return field(default=default, metadata={"hint": hint})


_KINDS: dict[str, Kind] = {"int": "whole", "float": "number", "bool": "truth"}


def key_of(one: Field[Any]) -> Key:
    rule = {name: value for name, value in one.metadata.items() if name not in ("written", "take")}
    default = None if one.default is MISSING else one.metadata.get("written", one.default)
    default = str(default) if isinstance(default, Path) else default
    kind = _KINDS.get(str(one.type).removesuffix(" | None"), "text")
    return Key(one.name, kind, default=default, required=one.default is MISSING, **rule)


def keys_of(table: type) -> dict[str, Field[Any]]:
    """The fields of a table that are keys of it, by name."""
    return {one.name: one for one in fields(table) if "hint" in one.metadata}


# ---------------------------------------------------------------------------------------------------------------------
# Tables.

_NAMED = "use letters, digits, '-', '_' and '.', at most 63"


@dataclass(frozen=True, slots=True)
class ProbeConfig:
    """``folder``: the probe's state; ``city``: in which it measures, by name."""

    name: str = _text("use lower-case letters, digits and inner '-', at most 63", check=_probe)
    folder: Path = _text("name a folder, relative to this file", Path())
    city: str | None = _text("where the probe measures, as reports name it: 'Davis'", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """URLs, and files that are absolute."""

    gateway: str = _text("as in https://server.example:8443", check=_url("https"))
    control: str = _text("as in https://server.example:8444", check=_url("https"))
    measurement: str = _text("as in http://server.example:8480, or https", check=_url("http", "https"))
    ca_file: Path | None = _text("the server's ca.pem; leave it out for a certificate of a public authority", None)
    token_file: Path = _text("written by: tandem-server probe add NAME --token-file FILE")

    @property
    def parameter(self) -> dict[str, str | None]:
        """As experiments are given it (``tandem.experiment.parameters``); the token is named by its file."""
        files = {"ca_file": None if self.ca_file is None else str(self.ca_file), "token_file": str(self.token_file)}
        return {"control": self.control, "measurement": self.measurement, **files}


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """A connection that ModemManager is to keep up; files are absolute, ``tried`` is in the probe's folder."""

    apn: str = _text("the access point's name, as the operator gives it")
    pin_file: Path | None = _text("a file with the SIM's PIN", None)
    roaming: bool = _truth(False)
    user: str | None = _text("as the operator gives it", None)
    password_file: Path | None = _text("a file with the access point's password", None)
    ip_type: str = _one_of("ipv4, ipv6 or ipv4v6", "ipv4v6")
    tried: Path = Path("sim")


@dataclass(frozen=True, slots=True)
class ModemConfig:
    """Exactly one of ``port`` (device, link to one, a stick's ``http://ADDRESS``, or ``modemmanager:`` and a USB or sysfs path) and
    ``usb`` (its place) is set; ``driver``: a family's name or ``auto``; ``sim``: the hash of the SIM that must be in it, made with
    the secret in ``sim_secret``; ``connection``: kept up through ModemManager, None when that is somebody else's business."""

    port: str | None = _text(
        "the AT port, as in /dev/ttyUSB2, a stick's web server, as in http://192.168.8.1, or modemmanager:1-1.2 (its USB path)",
        None,
        _port,
    )
    driver: str = _text("auto, or a module's name in tandem/modem/families", "auto", _name)
    usb: str | None = _text("its place, as in 1-1.2 (tandem modem list shows it), instead of port", None, _usb)
    sim: str | None = _text("the SIM's hash that tandem modem list shows; leave it out for any SIM", None, _sim)
    sim_secret: Path = Path(SIM_SECRET)
    connection: ConnectionConfig | None = None


@dataclass(frozen=True, slots=True)
class PlanConfig:
    """``bytes``: both ways, of one period. A period begins at 00:00 UTC of ``reset_day``, in a month without that day on its last.
    ``warn_share``: the share of ``bytes`` above which the forecast for the next reset is warned of."""

    bytes: int = _number(
        "what the SIM may carry from one reset to the next, both ways, as in 10_000_000_000 for 10 GB; 1 to 10^15",
        MISSING,
        1,
        10**15,
    )
    reset_day: int = _number(
        "the day of the month on which the plan begins anew (00:00 UTC; in a shorter month its last), 1 to 31", 1, 1, 31
    )
    warn_share: float = _number(
        "warn when more than this share of the plan is forecast for its end, 0.1 to 1", 1.0, 0.1, 1
    )


def day_share(plan_bytes: int) -> int:
    """What a SIM may carry a day, where only its plan is known."""
    return plan_bytes // LONGEST_MONTH


@dataclass(frozen=True, slots=True)
class PathConfig:
    """A path; either ``interface`` or ``usb``, the place of its modem, is set; ``modem`` None for Wi-Fi and Ethernet; ``gateway`` None
    on point-to-point interfaces, or to take the interface's own; ``gnss``: its modem's GNSS is the position's source;
    ``plan``: of its SIM, None when it is not configured; ``metered``: whether its bytes cost, None: where there is a modem or a plan;
    ``day_bytes``: what its SIM may carry a day, None when it is not configured."""

    name: str = _text(_NAMED, check=_name)
    operator: str | None = _text("the network's name, for people, at most 64 characters", None, _operator)
    interface: str | None = _text("as ip link shows it, at most 15 characters; or give usb", None, _interface)
    usb: str | None = _text(
        "the USB place of the path's modem, as in 1-1.2 (tandem modem list); or give interface", None, _usb
    )
    gateway: str | None = _text(
        "the next hop, as in 10.64.0.1; leave it out on point-to-point interfaces and where DHCP tells it",
        None,
        _address,
    )
    address: str | None = _text("which of the interface's addresses; leave it out for the first", None, _address)
    modem: ModemConfig | None = None
    gnss: bool = False
    plan: PlanConfig | None = None
    metered: bool | None = _truth(
        None, "true or false: whether its bytes cost; default: where it has a modem or a plan"
    )
    day_bytes: int | None = _number(
        "what the SIM may carry a day (UTC), both ways, 0 to 10^12; 0: only the radio is measured", None, 0, 10**12
    )

    @property
    def is_metered(self) -> bool:
        """Whether what it carries is paid for."""
        return self.metered if self.metered is not None else self.modem is not None or self.plan is not None

    @property
    def day_limit_bytes(self) -> int | None:
        """What it may carry a day (UTC), both ways; where it is not set, a day's part of the plan, or of one of 10 GB. None: no limit."""
        if self.day_bytes is not None or not self.is_metered:
            return self.day_bytes
        return day_share(UNTOLD_PLAN_BYTES if self.plan is None else self.plan.bytes)


@dataclass(frozen=True, slots=True)
class PollingConfig:
    """``period_s``: from poll to poll."""

    period_s: float = _number("seconds between polls, 0.2 to 60", 1.0, 0.2, 60)


@dataclass(frozen=True, slots=True)
class RecoveryConfig:
    """What is done to a modem that falls silent: which steps, and when."""

    enabled: bool = _truth(True)
    after_s: float = _number("seconds of silence before the first step, 5 to 3600", 60.0, 5, 3600)
    steps: tuple[str, ...] = _text(
        "of at, session, cfun, reboot, usb and power, with commas",
        RECOVERY_STEPS,
        _steps,
        written=",".join(RECOVERY_STEPS),
        take=_ladder,
    )
    longest_back_off_s: float = _number("seconds, 10 to 86400", 3600.0, 10, 86400)


@dataclass(frozen=True, slots=True)
class MobilityConfig:
    """When the probe counts as moving."""

    detector: str = _one_of("published or fused", "published")
    quantity: str = _one_of("rsrp_dbm or rssi_dbm", "rsrp_dbm")
    threshold_db: float = _number("dB, above 0 to 60; the paper's is 6.0", 6.0, 0, 60, above=True)
    stop_after_s: float = _number("seconds, above 0 to 3600", 10.0, 0, 3600, above=True)


@dataclass(frozen=True, slots=True)
class RunsConfig:
    """Exactly one of ``seconds`` and ``bytes`` is set. ``primary``: ``random`` or a path's name."""

    on_mobility_start: Literal["sequential", "simultaneous", "off"] = _one_of(
        "sequential, simultaneous or off", "simultaneous"
    )
    seconds: float | None = _number("how long one download lasts, 0.5 to 3600", None, 0.5, 3600)
    bytes: int | None = _number("how much one download fetches, 1 to 10^12", None, 1, 10**12)
    pause_s: float = _number("seconds between runs one after the other, 0 to 3600", 2.0, 0, 3600)
    minimum_gap_s: float = _number("seconds between pairs, 0 to 86400", 20.0, 0, 86400)
    seed: int = _number("a whole number from 0", 1, 0, 2**63 - 1)
    primary: str = _text("random, or the name of a path", "random", _name)
    capture: CaptureEnds = _one_of(" or ".join(CAPTURE_ENDS), "probe", CAPTURE_ENDS)
    steering: Policy = _one_of(", ".join(POLICIES), "off", POLICIES)


@dataclass(frozen=True, slots=True)
class CaptureConfig:
    """``budget_bytes`` for all captures on disk together."""

    enabled: bool = _truth(True)
    snaplen_bytes: int = _number("bytes kept of each packet, 64 to 262144", 128, 64, 262144)
    budget_bytes: int = _number("bytes that all captures may take, from 0", 500_000_000, 0, 10**14)


@dataclass(frozen=True, slots=True)
class CampaignsConfig:
    """Of those that the server pushes. ``from_server``: whether they are run; ``ask_every_s``: how often the server is asked for them."""

    from_server: bool = _truth(True, "true or false: whether campaigns that the server pushed are run")
    ask_every_s: float = _number("seconds between questions, 1 to 86400", 300.0, 1, 86400)


@dataclass(frozen=True, slots=True)
class TracesConfig:
    """When, where and how fast captures and other files of runs go to the server. ``over``: ``unmetered`` is Wi-Fi and Ethernet only.
    ``night``: minutes of the local day at which it begins and ends, None: at any time; ``metered_bytes_per_day``: for each metered path,
    headers included; ``keep``: what becomes of a file that the server has."""

    enabled: bool = _truth(True, "true, or false: nothing goes up but what a person asks for")
    over: Literal["unmetered", "any"] = _one_of("unmetered or any", "unmetered")
    night: tuple[int, int] | None = _text(
        "as in 01:00-05:00, this machine's local time; off: at any time",
        (60, 300),
        _night,
        written="01:00-05:00",
        take=_minutes,
    )
    still_for_s: float = _number("seconds without a change of the radio, 0 to 86400", 7200.0, 0, 86400)
    rate_bit_per_s: int = _number("bit/s at most on a path, 64000 to 10^9", 10_000_000, 64_000, 10**9)
    metered_bytes_per_day: int = _number(
        "bytes that uploads may cost each SIM a day (UTC), from 0", 50_000_000, 0, 10**12
    )
    plan_share: float = _number("share of what the SIM's plan is expected to have left at its reset, 0 to 1", 0.5, 0, 1)
    encoding: Literal["gzip", "identity"] = _one_of("gzip or identity", "gzip")
    keep: Literal["while_room", "until_received"] = _one_of("while_room or until_received", "while_room")
    free_bytes: int = _number(
        "bytes of the disk to be kept free where received files are kept, from 0", 500_000_000, 0, 10**14
    )


@dataclass(frozen=True, slots=True)
class RoundTripConfig:
    """``period_s``: between instants at which all paths are asked."""

    enabled: bool = _truth(False, "true or false: whether every path is asked all the time")
    period_s: float = _number("seconds from one instant to the next, 0.2 to 5", 1.0, 0.2, 5)

    @property
    def day_bytes(self) -> int:
        """Of one path, both ways, while nothing pauses it."""
        return round(86_400 / self.period_s * QUESTION_BYTES)

    @property
    def records_day_bytes(self) -> int:
        """Of one path's records, over whichever path the uploads take."""
        return round(86_400 / self.period_s * RECORD_BYTES)


def _channel(channel: str) -> Any:  # noqa: ANN401 a field
    return _text(f"as ls {CLASS} shows it, as in {NAMES[channel]}; or give only", None, _led)


@dataclass(frozen=True, slots=True)
class StatusLedConfig:
    """Which of the kernel's LEDs make the lamp."""

    enabled: bool = _truth(False)
    red: str | None = _channel("red")
    green: str | None = _channel("green")
    blue: str | None = _channel("blue")
    only: str | None = _text("the LED of a kit with one colour, instead of red, green and blue", None, _led)
    folder: Path = _text("where the kernel's LEDs are", CLASS)

    @property
    def given(self) -> dict[str, str]:
        named: dict[str, str | None] = {channel: getattr(self, channel) for channel in CHANNELS}
        return {channel: name for channel, name in named.items() if name is not None}

    @property
    def leds(self) -> Leds:
        return Leds(self.folder, {**NAMES, **self.given}, self.only)


@dataclass(frozen=True, slots=True)
class EPaperConfig:
    """``call``: whom to call, None when nobody is named; the GPIOs are lines of ``gpio``."""

    enabled: bool = _truth(False)
    call: str | None = _text("whom to call, as in: Ana, 555 0100; at most 40 characters", None, _call)
    spi: str = _text("as in /dev/spidev0.0", "/dev/spidev0.0", _device)
    gpio: str = _text("as in /dev/gpiochip0", "/dev/gpiochip0", _device)
    data_command: int = _number("the GPIO's number, 0 to 63", 25, 0, 63)
    reset: int = _number("the GPIO's number, 0 to 63", 23, 0, 63)
    busy: int = _number("the GPIO's number, 0 to 63", 24, 0, 63)


@dataclass(frozen=True, slots=True)
class ClockConfig:
    """Where the time comes from: ``tandem.export.clock.SOURCES``."""

    source: str = _one_of("auto, chrony, kernel, gpsd or system", "auto", SOURCES)


@dataclass(frozen=True, slots=True)
class ExperimentsConfig:
    """A person's own, beside the package's."""

    folder: Path | None = _text("a folder with experiments of your own, one folder each", None)


@dataclass(frozen=True, slots=True, repr=False)
class HomeZone:
    """A circle that no position leaves. It has no repr: no log shall hold one."""

    latitude_deg: float = _number("degrees, -90 to 90", MISSING, -90, 90, private=True)
    longitude_deg: float = _number("degrees, -180 to 180", MISSING, -180, 180, private=True)
    radius_m: float = _number("metres, 100 to 20000", 500.0, 100, 20000)


@dataclass(frozen=True, slots=True)
class PositionConfig:
    """Of ``device`` and ``modem`` (a path's name) at most one is set, as ``source`` says. Where the mode is off there is none of these."""

    mode: Literal["coarse", "full"] = _one_of("off, coarse or full", "off")
    source: Literal["gpsd", "device", "modem"] = _one_of(
        "gpsd (one that runs), device (a receiver) or modem (a modem's GNSS)", "gpsd", ("gpsd", "device", "modem")
    )
    host: str = _text("where gpsd runs, as in localhost", "localhost")
    port: int = _number("gpsd's port, 1 to 65535", 2947, 1, 65535)
    device: str | None = _text("the receiver, as in /dev/ttyACM0 or, better, a link below /dev/serial/by-id", None)
    modem: str | None = _text("the name of a path with a modem", None, _name)
    grid_deg: float = _number("degrees, 0.001 to 0.5; 0.01 is 1.1 km", 0.01, 0.001, 0.5)
    lost_after_s: float = _number("seconds without a fix, 2 to 600", 5.0, 2, 600)
    zones: tuple[HomeZone, ...] = ()


@dataclass(frozen=True, slots=True)
class SpoolConfig:
    """``limit_bytes``: see ``tandem.spool.Spool``."""

    limit_bytes: int = _number(
        "more than this waiting, and the oldest records are dropped; 32_768 to 10^12",
        DEFAULT_LIMIT_BYTES,
        32_768,
        10**12,
    )


@dataclass(frozen=True, slots=True)
class ExportConfig:
    """``drain_s``: for what is left at the end."""

    drain_s: float = _number("seconds to send what is left at the end, 0 to 3600", 30.0, 0, 3600)


SECTIONS: Mapping[str, type] = {
    "probe": ProbeConfig,
    "server": ServerConfig,
    "path": PathConfig,
    "path.modem": ModemConfig,
    "path.modem.connection": ConnectionConfig,
    "path.plan": PlanConfig,
    "recovery": RecoveryConfig,
    "polling": PollingConfig,
    "mobility": MobilityConfig,
    "runs": RunsConfig,
    "capture": CaptureConfig,
    "campaigns": CampaignsConfig,
    "traces": TracesConfig,
    "round_trip": RoundTripConfig,
    "status_led": StatusLedConfig,
    "e_paper": EPaperConfig,
    "clock": ClockConfig,
    "experiments": ExperimentsConfig,
    "position": PositionConfig,
    "position.home_zone": HomeZone,
    "spool": SpoolConfig,
    "export": ExportConfig,
}
"""Tables by name. ``path`` is a list of tables, each with at most one ``plan`` and one ``modem``, which has at most one ``connection``;
``position.home_zone`` is a list of tables; ``sysctl`` is free (names of net.*)."""

TABLES = {name: tuple(key_of(one) for one in keys_of(table).values()) for name, table in SECTIONS.items()}
"""The keys of each table."""

REQUIRED_TABLES = ("probe", "server", "path")
