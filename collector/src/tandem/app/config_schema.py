"""Every key of ``config.toml``: type, range, default and the mend, once. Checks values only; touches no hardware, no network."""

from __future__ import annotations

import re

from tandem.app import config_checks as checks
from tandem.app.clock.reading import SOURCES
from tandem.app.config_indicator import LED_KEYS, PAPER_KEYS
from tandem.app.config_round_trip import KEYS as ROUND_TRIP_KEYS
from tandem.app.config_traces import KEYS as TRACES_KEYS
from tandem.mptcp.steering import POLICIES
from tandem.schema.manifest import CAPTURE_ENDS
from tandem.schema.toml_keys import Key
from tandem.spool.spool import DEFAULT_LIMIT_BYTES

MANAGED = "modemmanager:"
"""Begins a port that is a modem of ModemManager: its USB path or sysfs path follows."""

_NAMED = "use letters, digits, '-', '_' and '.', at most 63"

TABLES: dict[str, tuple[Key, ...]] = {
    "probe": (
        Key(
            "name",
            "text",
            "use lower-case letters, digits and inner '-', at most 63",
            required=True,
            check=checks.probe,
        ),
        Key("folder", "text", "name a folder, relative to this file", default="."),
        Key("city", "text", "where the probe measures, as reports name it: 'Davis'", default=None),
    ),
    "server": (
        Key("gateway", "text", "as in https://server.example:8443", required=True, check=checks.url("https")),
        Key("control", "text", "as in https://server.example:8444", required=True, check=checks.url("https")),
        Key(
            "measurement",
            "text",
            "as in http://server.example:8480, or https",
            required=True,
            check=checks.url("http", "https"),
        ),
        Key("ca_file", "text", "the server's ca.pem; leave it out for a certificate of a public authority"),
        Key("token_file", "text", "written by: tandem-server probe add NAME --token-file FILE", required=True),
    ),
    "path": (
        Key("name", "text", _NAMED, required=True, check=checks.name),
        Key("operator", "text", "the network's name, for people, at most 64 characters", check=checks.operator),
        Key("interface", "text", "as ip link shows it, at most 15 characters; or give usb", check=checks.interface),
        Key(
            "usb",
            "text",
            "the USB place of the path's modem, as in 1-1.2 (tandem modem list); or give interface",
            check=checks.usb,
        ),
        Key(
            "gateway",
            "text",
            "the next hop, as in 10.64.0.1; leave it out on point-to-point interfaces and where DHCP tells it",
            check=checks.address,
        ),
        Key(
            "day_bytes",
            "whole",
            "what the SIM may carry a day (UTC), both ways, 0 to 10^12; 0: only the radio is measured",
            minimum=0,
            maximum=10**12,
        ),
        Key("metered", "truth", "true or false: whether its bytes cost; default: where it has a modem or a plan"),
        Key("address", "text", "which of the interface's addresses; leave it out for the first", check=checks.address),
    ),
    "path.modem": (
        Key(
            "port",
            "text",
            "the AT port, as in /dev/ttyUSB2, a stick's web server, as in http://192.168.8.1, or modemmanager:1-1.2 (its USB path)",
            check=checks.port,
        ),
        Key("driver", "text", "auto, or a module's name in tandem/modem/families", default="auto", check=checks.name),
        Key("usb", "text", "its place, as in 1-1.2 (tandem modem list shows it), instead of port", check=checks.usb),
        Key("sim", "text", "the SIM's hash that tandem modem list shows; leave it out for any SIM", check=checks.sim),
    ),
    "path.modem.connection": (
        Key("apn", "text", "the access point's name, as the operator gives it", required=True),
        Key("pin_file", "text", "a file with the SIM's PIN"),
        Key("roaming", "truth", "true or false", default=False),
        Key("user", "text", "as the operator gives it"),
        Key("password_file", "text", "a file with the access point's password"),
        Key("ip_type", "text", "ipv4, ipv6 or ipv4v6", default="ipv4v6", choices=("ipv4", "ipv6", "ipv4v6")),
    ),
    "path.plan": (
        Key(
            "bytes",
            "whole",
            "what the SIM may carry from one reset to the next, both ways, as in 10_000_000_000 for 10 GB; 1 to 10^15",
            required=True,
            minimum=1,
            maximum=10**15,
        ),
        Key(
            "reset_day",
            "whole",
            "the day of the month on which the plan begins anew (00:00 UTC; in a shorter month its last), 1 to 31",
            default=1,
            minimum=1,
            maximum=31,
        ),
        Key(
            "warn_share",
            "number",
            "warn when more than this share of the plan is forecast for its end, 0.1 to 1",
            default=1.0,
            minimum=0.1,
            maximum=1,
        ),
    ),
    "recovery": (
        Key("enabled", "truth", "true or false", default=True),
        Key(
            "after_s",
            "number",
            "seconds of silence before the first step, 5 to 3600",
            default=60.0,
            minimum=5,
            maximum=3600,
        ),
        Key(
            "steps",
            "text",
            "of at, session, cfun, reboot, usb and power, with commas",
            default="at,session,cfun,reboot,usb,power",
            check=checks.steps,
        ),
        Key("longest_back_off_s", "number", "seconds, 10 to 86400", default=3600.0, minimum=10, maximum=86400),
    ),
    "polling": (Key("period_s", "number", "seconds between polls, 0.2 to 60", default=1.0, minimum=0.2, maximum=60),),
    "mobility": (
        Key("detector", "text", "published or fused", default="published", choices=("published", "fused")),
        Key("quantity", "text", "rsrp_dbm or rssi_dbm", default="rsrp_dbm", choices=("rsrp_dbm", "rssi_dbm")),
        Key(
            "threshold_db",
            "number",
            "dB, above 0 to 60; the paper's is 6.0",
            default=6.0,
            minimum=0,
            maximum=60,
            above=True,
        ),
        Key("stop_after_s", "number", "seconds, above 0 to 3600", default=10.0, minimum=0, maximum=3600, above=True),
    ),
    "runs": (
        Key(
            "on_mobility_start",
            "text",
            "sequential, simultaneous or off",
            default="simultaneous",
            choices=("sequential", "simultaneous", "off"),
        ),
        Key("seconds", "number", "how long one download lasts, 0.5 to 3600", minimum=0.5, maximum=3600),
        Key("bytes", "whole", "how much one download fetches, 1 to 10^12", minimum=1, maximum=10**12),
        Key(
            "pause_s",
            "number",
            "seconds between runs one after the other, 0 to 3600",
            default=2.0,
            minimum=0,
            maximum=3600,
        ),
        Key("minimum_gap_s", "number", "seconds between pairs, 0 to 86400", default=20.0, minimum=0, maximum=86400),
        Key("seed", "whole", "a whole number from 0", default=1, minimum=0, maximum=2**63 - 1),
        Key("primary", "text", "random, or the name of a path", default="random", check=checks.name),
        Key("capture", "text", " or ".join(CAPTURE_ENDS), default="probe", choices=CAPTURE_ENDS),
        Key("steering", "text", ", ".join(POLICIES), default="off", choices=POLICIES),
    ),
    "capture": (
        Key("enabled", "truth", "true or false", default=True),
        Key(
            "snaplen_bytes", "whole", "bytes kept of each packet, 64 to 262144", default=128, minimum=64, maximum=262144
        ),
        Key(
            "budget_bytes",
            "whole",
            "bytes that all captures may take, from 0",
            default=500_000_000,
            minimum=0,
            maximum=10**14,
        ),
    ),
    "campaigns": (
        Key("from_server", "truth", "true or false: whether campaigns that the server pushed are run", default=True),
        Key("ask_every_s", "number", "seconds between questions, 1 to 86400", default=300.0, minimum=1, maximum=86400),
    ),
    "traces": TRACES_KEYS,
    "round_trip": ROUND_TRIP_KEYS,
    "status_led": LED_KEYS,
    "e_paper": PAPER_KEYS,
    "clock": (Key("source", "text", "auto, chrony, kernel, gpsd or system", default="auto", choices=SOURCES),),
    "experiments": (Key("folder", "text", "a folder with experiments of your own, one folder each"),),
    "position": (
        Key("mode", "text", "off, coarse or full", default="off", choices=("off", "coarse", "full")),
        Key(
            "source",
            "text",
            "gpsd (one that runs), device (a receiver) or modem (a modem's GNSS)",
            default="gpsd",
            choices=("gpsd", "device", "modem"),
        ),
        Key("host", "text", "where gpsd runs, as in localhost", default="localhost"),
        Key("port", "whole", "gpsd's port, 1 to 65535", default=2947, minimum=1, maximum=65535),
        Key("device", "text", "the receiver, as in /dev/ttyACM0 or, better, a link below /dev/serial/by-id"),
        Key("modem", "text", "the name of a path with a modem", check=checks.name),
        Key("grid_deg", "number", "degrees, 0.001 to 0.5; 0.01 is 1.1 km", default=0.01, minimum=0.001, maximum=0.5),
        Key("lost_after_s", "number", "seconds without a fix, 2 to 600", default=5.0, minimum=2, maximum=600),
    ),
    "position.home_zone": (
        Key("latitude_deg", "number", "degrees, -90 to 90", required=True, minimum=-90, maximum=90, private=True),
        Key("longitude_deg", "number", "degrees, -180 to 180", required=True, minimum=-180, maximum=180, private=True),
        Key("radius_m", "number", "metres, 100 to 20000", default=500.0, minimum=100, maximum=20000),
    ),
    "spool": (
        Key(
            "limit_bytes",
            "whole",
            "more than this waiting, and the oldest records are dropped; 32_768 to 10^12",
            default=DEFAULT_LIMIT_BYTES,
            minimum=32_768,
            maximum=10**12,
        ),
    ),
    "export": (
        Key(
            "drain_s",
            "number",
            "seconds to send what is left at the end, 0 to 3600",
            default=30.0,
            minimum=0,
            maximum=3600,
        ),
    ),
}
"""Tables by name. ``path`` is a list of tables, each with at most one ``plan`` and one ``modem``, which has at most one ``connection``;
``position.home_zone`` is a list of tables; ``sysctl`` is free (names of net.*)."""

REQUIRED_TABLES = ("probe", "server", "path")
SYSCTL_NAME = re.compile(r"net(\.[A-Za-z0-9_-]+)+\Z")
DEFAULT_SECONDS = 8.0
"""A run's length when neither ``seconds`` nor ``bytes`` is given."""

MOST_PATHS = 8
"""As many as the kernel takes Multipath TCP endpoints."""
