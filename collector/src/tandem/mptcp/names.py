"""Addresses of a name, by the path that is to carry what follows: asked of the path's own DNS servers over its interface, in bounded time.

The machine's resolver asks whichever server it likes over whichever path: a dead default path would stall what goes over the good one,
and for longer than anybody can wait. It is asked where the path has no server of its own, or none that knows the name. Which servers
belong to an interface, systemd-resolved, NetworkManager or ``/etc/resolv.conf`` say (``find``).
"""

from __future__ import annotations

import ipaddress
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from tandem.mptcp import dns

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
    sources: tuple[tuple[str, Callable[[], tuple[str, ...]]], ...] = (
        ("resolvectl", lambda: resolvectl(call(["resolvectl", "dns", interface]))),
        ("nmcli", lambda: nmcli(call(["nmcli", "-g", "IP4.DNS,IP6.DNS", "device", "show", interface]))),
        ("resolv.conf", lambda: resolv_conf(_text(file))),
    )
    for source, ask in sources:
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


DEADLINE_S = 5.0
FRESH_S = 30.0
"""A name that was answered is not asked for again so soon."""

_TRY_S, _TRIES, _RATE = 1.0, 3, 100.0
_KINDS: dict[int, tuple[int, ...]] = {
    socket.AF_UNSPEC: (dns.A, dns.AAAA),
    socket.AF_INET: (dns.A,),
    socket.AF_INET6: (dns.AAAA,),
}


class Names:
    """From any thread. ``find``: the DNS servers of an interface; ``system``: the machine's resolver, as getaddrinfo(3); ``hosts``: the
    file of names that everybody on this machine knows."""

    def __init__(
        self,
        find: Callable[[str], Resolvers] = find,
        system: Callable[[str, int], list[str]] | None = None,
        hosts: Path = Path("/etc/hosts"),
        port: int = 53,
    ) -> None:
        self._find, self._system, self._hosts, self._port = find, system or _system, hosts, port
        self._lock = threading.Lock()
        self._good: dict[tuple[str, str | None, int], tuple[list[str], float]] = {}
        self._pending: dict[tuple[str, str | None, int], Future[list[str]]] = {}

    def addresses(
        self, host: str, interface: str | None, family: int = socket.AF_UNSPEC, deadline_s: float = DEADLINE_S
    ) -> list[str]:
        """Of ``host``, one or more, IPv4 before IPv6 unless the resolver of the machine gave them. OSError when nobody gave any within the
        deadline, and nobody had before (the last good answer holds until there is another), and for an address of another family."""
        try:
            literal = str(ipaddress.ip_address(host))
        except ValueError:
            key = host, interface, family
        else:
            if family not in (socket.AF_UNSPEC, _family(literal)):
                raise OSError(f"{host}: not an address of the path's family")
            return [literal]
        with self._lock:
            good, at_s = self._good.get(key, ([], 0.0))
            if good and time.monotonic() - at_s < FRESH_S:
                return good
            pending = self._pending.get(key)
            if pending is None:  # one that is stuck is not asked a second time
                pending = Future()
                try:
                    threading.Thread(target=self._ask, args=(key, pending), name=f"name {host}", daemon=True).start()
                except RuntimeError as error:  # no thread is left
                    raise OSError(f"{host}: {error}") from error
                self._pending[key] = pending
        try:
            return pending.result(deadline_s)
        except TimeoutError:
            failure = OSError(f"{host}: no answer to the question for its address within {deadline_s:g} s")
        except OSError as error:
            failure = error
        if good:
            return good
        raise failure

    def _ask(self, key: tuple[str, str | None, int], pending: Future[list[str]]) -> None:
        try:
            found, failure = self._look_up(*key), OSError(f"{key[0]}: the name has no address")
        except Exception as error:  # noqa: BLE001 whoever waits hears of it, and the name can be asked for again
            found, failure = [], error if isinstance(error, OSError) else OSError(f"{key[0]}: {error}")
        with self._lock:
            del self._pending[key]
            if found:
                self._good[key] = found, time.monotonic()
        if found:
            pending.set_result(found)
        else:
            pending.set_exception(failure)

    def _look_up(self, host: str, interface: str | None, family: int) -> list[str]:
        known = [a for a in _in_hosts(self._hosts, host) if family in (socket.AF_UNSPEC, _family(a))]
        if known or interface is None:
            return known or self._system(host, family)
        name, kinds = dns.normal_name(host), _KINDS[family]
        asker = dns.Asker(interface, self._find(interface).addresses, _RATE, _TRY_S, _TRIES, self._port)
        answers = asker.ask([name], kinds, lambda: False)
        found = [address for kind in kinds if (answer := answers.get((name, kind))) for address in answer.addresses]
        return found or self._system(host, family)


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _in_hosts(file: Path, host: str) -> list[str]:
    """hosts(5)."""
    try:
        rows = [line.partition("#")[0].split() for line in file.read_text(errors="replace").splitlines()]
    except OSError:
        return []
    return [row[0] for row in rows if len(row) > 1 and host.lower() in (name.lower() for name in row[1:])]


def _system(host: str, family: int) -> list[str]:
    found = socket.getaddrinfo(host, None, family, socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in found))


addresses = Names().addresses
"""This program's."""
