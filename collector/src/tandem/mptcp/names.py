"""Addresses of a name, by the path that is to carry what follows: asked of the path's own DNS servers over its interface, in bounded time.

The machine's resolver asks whichever server it likes over whichever path: a dead default path would stall what goes over the good one,
and for longer than anybody can wait. It is asked where the path has no server of its own, or none that knows the name.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from tandem.mptcp import dns_message, resolvers
from tandem.mptcp.dns_asking import Asker

DEADLINE_S = 5.0
FRESH_S = 30.0
"""A name that was answered is not asked for again so soon."""

_TRY_S, _TRIES, _RATE = 1.0, 3, 100.0
_KINDS: dict[int, tuple[int, ...]] = {
    socket.AF_UNSPEC: (dns_message.A, dns_message.AAAA),
    socket.AF_INET: (dns_message.A,),
    socket.AF_INET6: (dns_message.AAAA,),
}


class Names:
    """From any thread. ``find``: the DNS servers of an interface; ``system``: the machine's resolver, as getaddrinfo(3); ``hosts``: the
    file of names that everybody on this machine knows."""

    def __init__(
        self,
        find: Callable[[str], resolvers.Resolvers] = resolvers.find,
        system: Callable[[str, int], list[str]] | None = None,
        hosts: Path = Path("/etc/hosts"),
        port: int = 53,
    ) -> None:
        self._find, self._system, self._hosts, self._port = find, system or _system, hosts, port
        self._lock = threading.Lock()
        self._good: dict[tuple[str, str | None, int], tuple[list[str], float]] = {}
        self._asked: dict[tuple[str, str | None, int], Future[list[str]]] = {}

    def addresses(
        self, host: str, interface: str | None, family: int = socket.AF_UNSPEC, deadline_s: float = DEADLINE_S
    ) -> list[str]:
        """Of ``host``, one or more, IPv4 before IPv6 unless the machine's resolver told them. OSError when nobody told any within the
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
            asked = self._asked.get(key)
            if asked is None:  # one that is stuck is not asked a second time
                asked = Future()
                try:
                    threading.Thread(target=self._ask, args=(key, asked), name=f"name {host}", daemon=True).start()
                except RuntimeError as error:  # no thread is left
                    raise OSError(f"{host}: {error}") from error
                self._asked[key] = asked
        try:
            return asked.result(deadline_s)
        except TimeoutError:
            failure = OSError(f"{host}: no answer to the question for its address within {deadline_s:g} s")
        except OSError as error:
            failure = error
        if good:
            return good
        raise failure

    def _ask(self, key: tuple[str, str | None, int], asked: Future[list[str]]) -> None:
        try:
            found, failure = self._look_up(*key), OSError(f"{key[0]}: the name has no address")
        except Exception as error:  # noqa: BLE001 whoever waits hears of it, and the name can be asked for again
            found, failure = [], error if isinstance(error, OSError) else OSError(f"{key[0]}: {error}")
        with self._lock:
            del self._asked[key]
            if found:
                self._good[key] = found, time.monotonic()
        if found:
            asked.set_result(found)
        else:
            asked.set_exception(failure)

    def _look_up(self, host: str, interface: str | None, family: int) -> list[str]:
        known = [a for a in _in_hosts(self._hosts, host) if family in (socket.AF_UNSPEC, _family(a))]
        if known or interface is None:
            return known or self._system(host, family)
        name, kinds = dns_message.normal_name(host), _KINDS[family]
        asker = Asker(interface, self._find(interface).addresses, _RATE, _TRY_S, _TRIES, self._port)
        answers = asker.ask([name], kinds, lambda: False)
        found = [address for kind in kinds if (told := answers.get((name, kind))) for address in told.addresses]
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
