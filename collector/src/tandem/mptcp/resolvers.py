"""Which DNS servers belong to an interface, as systemd-resolved, NetworkManager or ``/etc/resolv.conf`` have them."""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_COMMAND_TIMEOUT_S = 5.0
_WORD = re.compile(r"[\s|,]+")


@dataclass(frozen=True, slots=True)
class Resolvers:
    """The servers of one path, in order. ``source``: ``parameter``, ``resolvectl``, ``nmcli``; ``resolv.conf`` is the machine's
    and not the interface's own, so a result that says so compares less than it seems to."""

    addresses: tuple[str, ...]
    source: str | None


def find(
    interface: str, run: Callable[[list[str]], str] | None = None, file: Path = Path("/etc/resolv.conf")
) -> Resolvers:
    """The servers of ``interface``, none when nobody tells. Loopback addresses are left out, except for ``lo``: a stub there sends its
    questions over an interface of its own choice."""
    call = run or output_of
    told_by: tuple[tuple[str, Callable[[], tuple[str, ...]]], ...] = (
        ("resolvectl", lambda: resolvectl(call(["resolvectl", "dns", interface]))),
        ("nmcli", lambda: nmcli(call(["nmcli", "-g", "IP4.DNS,IP6.DNS", "device", "show", interface]))),
        ("resolv.conf", lambda: resolv_conf(_text(file))),
    )
    for source, ask in told_by:
        usable = tuple(a for a in ask() if interface == "lo" or not ipaddress.ip_address(a).is_loopback)
        if usable:
            return Resolvers(usable, source)
    return Resolvers((), None)


def resolvectl(text: str) -> tuple[str, ...]:
    """From ``Link 3 (wwan0): 10.0.0.1 fe80::1%3``. Link-local ones are left out: they need a scope that another machine lacks."""
    return _addresses(text.partition("):")[2])


def nmcli(text: str) -> tuple[str, ...]:
    """From the lines of ``nmcli -g IP4.DNS,IP6.DNS``: ``10.0.0.1 | 10.0.0.2``, colons of IPv6 written as ``\\:``."""
    return _addresses(text.replace("\\:", ":"))


def resolv_conf(text: str) -> tuple[str, ...]:
    """The ``nameserver`` lines (resolv.conf(5))."""
    rows = (line.split() for line in text.splitlines())
    return _addresses(" ".join(row[1] for row in rows if len(row) > 1 and row[0] == "nameserver"))


def output_of(command: list[str]) -> str:
    """What ``command`` prints; nothing when it is not installed, fails or takes too long: then the next source is asked."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""  # a machine without one has no resolver there


def _addresses(text: str) -> tuple[str, ...]:
    found = (address_of(word) for word in _WORD.split(text))
    return tuple(dict.fromkeys(str(a) for a in found if a is not None and not a.is_link_local))


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
