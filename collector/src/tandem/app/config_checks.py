"""What a text in the configuration may be: each returns what is wrong with a value, None when nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from tandem.schema.line_protocol import tag_fault

RECOVERY_STEPS = ("at", "session", "cfun", "reboot", "usb", "power")
"""In the order of the ladder, whatever the order in the file."""


def name(value: str) -> str | None:
    return None if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", value) else f"{value!r} is no name"


def probe(value: str) -> str | None:
    """As the server takes names (``tandem-server probe add``): another would have every manifest refused."""
    return None if re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", value) else f"{value!r} is no probe's name"


def operator(value: str) -> str | None:
    """As the endpoint takes it, and line protocol can carry it."""
    return tag_fault(value) if len(value) <= 64 else f"{value!r} is longer than 64"


def interface(value: str) -> str | None:
    return (
        None
        if re.fullmatch(r"[^\s/:]{1,15}", value) and value not in (".", "..")
        else f"{value!r} is no interface's name"
    )


def usb(value: str) -> str | None:
    """As sysfs names it: bus, ports, and one of the device's interfaces where it has several of a kind."""
    place = r"[0-9]{1,4}-[0-9]{1,3}(?:\.[0-9]{1,3}){0,6}(?::[0-9]{1,3}\.[0-9]{1,3})?"
    return None if re.fullmatch(place, value) else f"{value!r} is no USB path"


def address(value: str) -> str | None:
    if ":" in value:
        try:
            IPv6Address(value)
        except ValueError:
            return f"{value!r} is no IPv6 address"
        return None
    parts = value.split(".")
    good = len(parts) == 4 and all(re.fullmatch(r"0|[1-9][0-9]{0,2}", p) and int(p) < 256 for p in parts)
    return None if good else f"{value!r} is no IPv4 address"


def url(*schemes: str) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        try:
            parts = urlsplit(value)
            good = parts.scheme in schemes and bool(parts.hostname) and parts.path in ("", "/") and not parts.query
            good = good and parts.port != 0
        except ValueError:
            good = False
        return (
            None
            if good
            else f"{value!r} is not of the form {' or '.join(f'{scheme}://HOST:PORT' for scheme in schemes)}"
        )

    return check


def port(value: str) -> str | None:
    return url("http")(value) if "://" in value else None


def sim(value: str) -> str | None:
    return None if re.fullmatch(r"[0-9a-f]{24}", value) else f"{value!r} is no hash of 24 hexadecimal digits"


def steps(value: str) -> str | None:
    given = [step.strip() for step in value.split(",")]
    wrong = [step for step in given if step not in RECOVERY_STEPS]
    return f"{wrong[0]!r} is no step of the recovery ladder" if wrong else None
