"""Every key of ``config.toml``: type, range, default and the mend, once. Checks values only; touches no hardware, no network. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Any
from urllib.parse import urlsplit

from tandem.app.clock.reading import SOURCES
from tandem.indicator.lamp import CLASS, NAMES
from tandem.mptcp.steering import POLICIES
from tandem.schema.line_protocol import tag_fault
from tandem.schema.manifest import CAPTURE_ENDS
from tandem.schema.status_led import CHANNELS
from tandem.schema.toml_file import Key
from tandem.spool.spool import DEFAULT_LIMIT_BYTES

MANAGED = "modemmanager:"
"""Begins a port that is a modem of ModemManager: its USB path or sysfs path follows."""
RECOVERY_STEPS = ("at", "session", "cfun", "reboot", "usb", "power")
"""In the order of the ladder, whatever the order in the file."""
NIGHT = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])\Z")
NIGHT_OFF = "off"
SYSCTL_NAME = re.compile(r"net(\.[A-Za-z0-9_-]+)+\Z")
DEFAULT_SECONDS = 8.0
"""A run's length when neither ``seconds`` nor ``bytes`` is given."""
MOST_PATHS = 8
"""As many as the kernel takes Multipath TCP endpoints."""
MOST_ZONES = 20
LONGEST_CALL = 40

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
    if ":" in value:
        try:
            IPv6Address(value)
        except ValueError:
            return f"{value!r} is no IPv6 address"
        return None
    parts = value.split(".")
    good = len(parts) == 4 and all(re.fullmatch(r"0|[1-9][0-9]{0,2}", p) and int(p) < 256 for p in parts)
    return None if good else f"{value!r} is no IPv4 address"


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


def _night(value: str) -> str | None:
    found = NIGHT.match(value)
    if found is None:
        return None if value == NIGHT_OFF else f"{value!r} is no time of day"
    return f"{value!r} begins when it ends" if found[1] + found[2] == found[3] + found[4] else None


def _call(value: str) -> str | None:
    return None if len(value) <= LONGEST_CALL else f"{len(value)} letters are more than the paper has room for"


# ---------------------------------------------------------------------------------------------------------------------
# Kinds of keys.


def _text(name: str, mend: str, default: str | None = None, check: Check | None = None, **more: Any) -> Key:  # noqa: ANN401 see Key
    return Key(name, "text", mend, default=default, check=check, **more)


def _one_of(name: str, mend: str, default: str, choices: tuple[str, ...] = ()) -> Key:
    """``choices``: else those that ``mend`` lists."""
    return Key(name, "text", mend, default=default, choices=choices or tuple(re.split(", | or ", mend)))


def _number(name: str, mend: str, default: float | None, minimum: float, maximum: float, **more: Any) -> Key:  # noqa: ANN401 see Key
    return Key(name, "number", mend, default=default, minimum=minimum, maximum=maximum, **more)


def _whole(name: str, mend: str, default: int | None, minimum: int, maximum: int, **more: Any) -> Key:  # noqa: ANN401 see Key
    return Key(name, "whole", mend, default=default, minimum=minimum, maximum=maximum, **more)


def _truth(name: str, default: bool | None, mend: str = "true or false") -> Key:
    return Key(name, "truth", mend, default=default)


def _gpio(name: str, default: int) -> Key:
    return _whole(name, "the GPIO's number, 0 to 63", default, 0, 63)


_NAMED = "use letters, digits, '-', '_' and '.', at most 63"

TABLES: dict[str, tuple[Key, ...]] = {
    "probe": (
        _text("name", "use lower-case letters, digits and inner '-', at most 63", check=_probe, required=True),
        _text("folder", "name a folder, relative to this file", "."),
        _text("city", "where the probe measures, as reports name it: 'Davis'"),
    ),
    "server": (
        _text("gateway", "as in https://server.example:8443", check=_url("https"), required=True),
        _text("control", "as in https://server.example:8444", check=_url("https"), required=True),
        _text("measurement", "as in http://server.example:8480, or https", check=_url("http", "https"), required=True),
        _text("ca_file", "the server's ca.pem; leave it out for a certificate of a public authority"),
        _text("token_file", "written by: tandem-server probe add NAME --token-file FILE", required=True),
    ),
    "path": (
        _text("name", _NAMED, check=_name, required=True),
        _text("operator", "the network's name, for people, at most 64 characters", check=_operator),
        _text("interface", "as ip link shows it, at most 15 characters; or give usb", check=_interface),
        _text(
            "usb", "the USB place of the path's modem, as in 1-1.2 (tandem modem list); or give interface", check=_usb
        ),
        _text(
            "gateway",
            "the next hop, as in 10.64.0.1; leave it out on point-to-point interfaces and where DHCP tells it",
            check=_address,
        ),
        _whole(
            "day_bytes",
            "what the SIM may carry a day (UTC), both ways, 0 to 10^12; 0: only the radio is measured",
            None,
            0,
            10**12,
        ),
        _truth("metered", None, "true or false: whether its bytes cost; default: where it has a modem or a plan"),
        _text("address", "which of the interface's addresses; leave it out for the first", check=_address),
    ),
    "path.modem": (
        _text(
            "port",
            "the AT port, as in /dev/ttyUSB2, a stick's web server, as in http://192.168.8.1, or modemmanager:1-1.2 (its USB path)",
            check=_port,
        ),
        _text("driver", "auto, or a module's name in tandem/modem/families", "auto", _name),
        _text("usb", "its place, as in 1-1.2 (tandem modem list shows it), instead of port", check=_usb),
        _text("sim", "the SIM's hash that tandem modem list shows; leave it out for any SIM", check=_sim),
    ),
    "path.modem.connection": (
        _text("apn", "the access point's name, as the operator gives it", required=True),
        _text("pin_file", "a file with the SIM's PIN"),
        _truth("roaming", False),
        _text("user", "as the operator gives it"),
        _text("password_file", "a file with the access point's password"),
        _one_of("ip_type", "ipv4, ipv6 or ipv4v6", "ipv4v6"),
    ),
    "path.plan": (
        _whole(
            "bytes",
            "what the SIM may carry from one reset to the next, both ways, as in 10_000_000_000 for 10 GB; 1 to 10^15",
            None,
            1,
            10**15,
            required=True,
        ),
        _whole(
            "reset_day",
            "the day of the month on which the plan begins anew (00:00 UTC; in a shorter month its last), 1 to 31",
            1,
            1,
            31,
        ),
        _number(
            "warn_share", "warn when more than this share of the plan is forecast for its end, 0.1 to 1", 1.0, 0.1, 1
        ),
    ),
    "recovery": (
        _truth("enabled", True),
        _number("after_s", "seconds of silence before the first step, 5 to 3600", 60.0, 5, 3600),
        _text("steps", "of at, session, cfun, reboot, usb and power, with commas", ",".join(RECOVERY_STEPS), _steps),
        _number("longest_back_off_s", "seconds, 10 to 86400", 3600.0, 10, 86400),
    ),
    "polling": (_number("period_s", "seconds between polls, 0.2 to 60", 1.0, 0.2, 60),),
    "mobility": (
        _one_of("detector", "published or fused", "published"),
        _one_of("quantity", "rsrp_dbm or rssi_dbm", "rsrp_dbm"),
        _number("threshold_db", "dB, above 0 to 60; the paper's is 6.0", 6.0, 0, 60, above=True),
        _number("stop_after_s", "seconds, above 0 to 3600", 10.0, 0, 3600, above=True),
    ),
    "runs": (
        _one_of("on_mobility_start", "sequential, simultaneous or off", "simultaneous"),
        _number("seconds", "how long one download lasts, 0.5 to 3600", None, 0.5, 3600),
        _whole("bytes", "how much one download fetches, 1 to 10^12", None, 1, 10**12),
        _number("pause_s", "seconds between runs one after the other, 0 to 3600", 2.0, 0, 3600),
        _number("minimum_gap_s", "seconds between pairs, 0 to 86400", 20.0, 0, 86400),
        _whole("seed", "a whole number from 0", 1, 0, 2**63 - 1),
        _text("primary", "random, or the name of a path", "random", _name),
        _one_of("capture", " or ".join(CAPTURE_ENDS), "probe", CAPTURE_ENDS),
        _one_of("steering", ", ".join(POLICIES), "off", POLICIES),
    ),
    "capture": (
        _truth("enabled", True),
        _whole("snaplen_bytes", "bytes kept of each packet, 64 to 262144", 128, 64, 262144),
        _whole("budget_bytes", "bytes that all captures may take, from 0", 500_000_000, 0, 10**14),
    ),
    "campaigns": (
        _truth("from_server", True, "true or false: whether campaigns that the server pushed are run"),
        _number("ask_every_s", "seconds between questions, 1 to 86400", 300.0, 1, 86400),
    ),
    "traces": (
        _truth("enabled", True, "true, or false: nothing goes up but what a person asks for"),
        _one_of("over", "unmetered or any", "unmetered"),
        _text("night", "as in 01:00-05:00, this machine's local time; off: at any time", "01:00-05:00", _night),
        _number("still_for_s", "seconds without a change of the radio, 0 to 86400", 7200.0, 0, 86400),
        _whole("rate_bit_per_s", "bit/s at most on a path, 64000 to 10^9", 10_000_000, 64_000, 10**9),
        _whole(
            "metered_bytes_per_day", "bytes that uploads may cost each SIM a day (UTC), from 0", 50_000_000, 0, 10**12
        ),
        _number("plan_share", "share of what the SIM's plan is expected to have left at its reset, 0 to 1", 0.5, 0, 1),
        _one_of("encoding", "gzip or identity", "gzip"),
        _one_of("keep", "while_room or until_received", "while_room"),
        _whole(
            "free_bytes",
            "bytes of the disk to be kept free where received files are kept, from 0",
            500_000_000,
            0,
            10**14,
        ),
    ),
    "round_trip": (
        _truth("enabled", False, "true or false: whether every path is asked all the time"),
        _number("period_s", "seconds from one instant to the next, 0.2 to 5", 1.0, 0.2, 5),
    ),
    "status_led": (
        _truth("enabled", False),
        *(_text(c, f"as ls {CLASS} shows it, as in {NAMES[c]}; or give only", check=_led) for c in CHANNELS),
        _text("only", "the LED of a kit with one colour, instead of red, green and blue", check=_led),
        _text("folder", "where the kernel's LEDs are", str(CLASS)),
    ),
    "e_paper": (
        _truth("enabled", False),
        _text("call", "whom to call, as in: Ana, 555 0100; at most 40 characters", check=_call),
        _text("spi", "as in /dev/spidev0.0", "/dev/spidev0.0", _device),
        _text("gpio", "as in /dev/gpiochip0", "/dev/gpiochip0", _device),
        _gpio("data_command", 25),
        _gpio("reset", 23),
        _gpio("busy", 24),
    ),
    "clock": (_one_of("source", "auto, chrony, kernel, gpsd or system", "auto", SOURCES),),
    "experiments": (_text("folder", "a folder with experiments of your own, one folder each"),),
    "position": (
        _one_of("mode", "off, coarse or full", "off"),
        _one_of(
            "source",
            "gpsd (one that runs), device (a receiver) or modem (a modem's GNSS)",
            "gpsd",
            ("gpsd", "device", "modem"),
        ),
        _text("host", "where gpsd runs, as in localhost", "localhost"),
        _whole("port", "gpsd's port, 1 to 65535", 2947, 1, 65535),
        _text("device", "the receiver, as in /dev/ttyACM0 or, better, a link below /dev/serial/by-id"),
        _text("modem", "the name of a path with a modem", check=_name),
        _number("grid_deg", "degrees, 0.001 to 0.5; 0.01 is 1.1 km", 0.01, 0.001, 0.5),
        _number("lost_after_s", "seconds without a fix, 2 to 600", 5.0, 2, 600),
    ),
    "position.home_zone": (
        _number("latitude_deg", "degrees, -90 to 90", None, -90, 90, required=True, private=True),
        _number("longitude_deg", "degrees, -180 to 180", None, -180, 180, required=True, private=True),
        _number("radius_m", "metres, 100 to 20000", 500.0, 100, 20000),
    ),
    "spool": (
        _whole(
            "limit_bytes",
            "more than this waiting, and the oldest records are dropped; 32_768 to 10^12",
            DEFAULT_LIMIT_BYTES,
            32_768,
            10**12,
        ),
    ),
    "export": (_number("drain_s", "seconds to send what is left at the end, 0 to 3600", 30.0, 0, 3600),),
}
"""Tables by name. ``path`` is a list of tables, each with at most one ``plan`` and one ``modem``, which has at most one ``connection``;
``position.home_zone`` is a list of tables; ``sysctl`` is free (names of net.*)."""

REQUIRED_TABLES = ("probe", "server", "path")
