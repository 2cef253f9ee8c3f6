"""A modem whose address another path has already: behind a NAT in a network namespace of its own, joined by a veth pair.

    this namespace                         │ tandem-INODE-I
    tnatI 198.18.71.(4I+1)/30 ── veth ─────┼── tnatIn (4I+2) ── forwarding, masquerade ── eth2 192.168.8.100/24 ── 192.168.8.1

The probe, and the Multipath TCP sockets in its one namespace, see tnatI only: an address of its own and a next hop. 198.18.0.0/15 is
kept for measuring benches (RFC 2544), so that no operator's network collides with it in turn.

The namespace has a name, in /run/netns as ``ip netns`` makes it. So it outlives a collector that was killed, and with it the
interface's addresses and routes, which an interface loses when it leaves a namespace: the next start finds it by its name and puts
everything back. (A namespace without a name would end with the collector, and the kernel would give the interface back bare, to the
machine's first namespace.) INODE is the namespace that the collector itself is in: two collectors on one machine do not meet.

Needs CAP_SYS_ADMIN beside CAP_NET_ADMIN, and the program nft. The interface's DHCP client loses it by this; ``Leases`` take over.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import math
import os
import random
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tandem.mptcp.iproute import PROTOCOL, Interface, IpError, interfaces, ip, ip_json, quietly
from tandem.mptcp.netlink import socket_in

# ---------------------------------------------------------------------------------------------------------------------
# A modem's address kept by DHCP, where its own client lost sight of the interface. Pure: times and answers in,
# messages out.
#
# Messages of RFC 2131 with options of RFC 2132, as much as it takes to keep an address. Everything asks for a
# broadcast answer: the client perhaps has no address that could be answered to. The address that there is (another
# client got it) is requested at once, since how long it holds is not known. Until a server says something else it
# stays: where nobody answers, it may have been set by hand.


_FIXED = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_COOKIE = b"\x63\x82\x53\x63"
_REQUEST, _REPLY, _ETHERNET, _BROADCAST = 1, 2, 1, 0x8000
_DISCOVER, _ASK = 1, 3
_MASK, _ROUTER, _WANTED, _LEASE, _KIND, _SERVER, _ASKED_FOR, _RENEWAL, _CLIENT, _PAD, _END = (
    1, 3, 50, 51, 53, 54, 55, 58, 61, 0, 255
)  # fmt: skip
_ANSWERS: dict[int, Literal["offer", "given", "refused"]] = {2: "offer", 5: "given", 6: "refused"}
_SMALLEST = 300
"""Bytes; some servers pass over what is smaller than a BOOTP message."""


class DhcpError(ValueError):
    """The bytes are no answer of a DHCP server."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``refused``: the requested address does not fit (any more). ``lease_s`` and ``renew_s``: seconds from now."""

    kind: Literal["offer", "given", "refused"]
    transaction: int
    hardware: bytes
    address: str
    prefix: int
    router: str | None
    server: str | None
    lease_s: int | None
    renew_s: int | None


def discover(transaction: int, hardware: bytes) -> bytes:
    """Who gives addresses here?"""
    return _message(_DISCOVER, transaction, hardware, b"")


def request(transaction: int, hardware: bytes, address: str, server: str | None) -> bytes:
    """May I have, or keep, ``address``? ``server``: whose offer that is; None to keep one of before (RFC 2131, 4.3.2: INIT-REBOOT)."""
    wanted = _option(_WANTED, ipaddress.IPv4Address(address).packed)
    if server is not None:
        wanted += _option(_SERVER, ipaddress.IPv4Address(server).packed)
    return _message(_ASK, transaction, hardware, wanted)


def _message(kind: int, transaction: int, hardware: bytes, more: bytes) -> bytes:
    none = bytes(4)
    fixed = _FIXED.pack(
        _REQUEST, _ETHERNET, len(hardware), 0, transaction, 0, _BROADCAST, none, none, none, none, hardware, b"", b""
    )
    options = _option(_KIND, bytes([kind])) + _option(_CLIENT, bytes([_ETHERNET]) + hardware) + more
    options += _option(_ASKED_FOR, bytes([_MASK, _ROUTER, _LEASE, _RENEWAL]))
    return (fixed + _COOKIE + options + bytes([_END])).ljust(_SMALLEST, bytes([_PAD]))


def _option(kind: int, content: bytes) -> bytes:
    return bytes([kind, len(content)]) + content


def parse(data: bytes) -> Answer:
    """A server's answer; DhcpError when it is none. A missing mask is taken for 255.255.255.0."""
    if len(data) < _FIXED.size + len(_COOKIE):
        raise DhcpError(f"{len(data)} bytes")
    operation, _, length, _, transaction, _, _, _, given, _, _, hardware, _, _ = _FIXED.unpack_from(data)
    if operation != _REPLY or data[_FIXED.size : _FIXED.size + 4] != _COOKIE or length > 16:
        raise DhcpError("no answer of a server")
    options = _options(data[_FIXED.size + 4 :])
    kind = _ANSWERS.get(int.from_bytes(options.get(_KIND, b""), "big"))
    if kind is None:
        raise DhcpError("an answer of another kind")
    address = ipaddress.IPv4Address(given)
    if kind != "refused" and (address.is_unspecified or address.is_multicast or address.is_loopback):
        raise DhcpError(f"{address} is no address for an interface")
    return Answer(
        kind,
        transaction,
        hardware[:length],
        str(address),
        _prefix(options.get(_MASK)),
        _host(options.get(_ROUTER)),
        _host(options.get(_SERVER)),
        _seconds(options.get(_LEASE)),
        _seconds(options.get(_RENEWAL)),
    )


def _options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at < len(data) and data[at] != _END:
        if data[at] == _PAD:
            at += 1
            continue
        if at + 1 >= len(data) or at + 2 + data[at + 1] > len(data):
            raise DhcpError("an option that is longer than its message")
        found.setdefault(data[at], data[at + 2 : at + 2 + data[at + 1]])
        at += 2 + data[at + 1]
    return found


def _prefix(mask: bytes | None) -> int:
    if mask is None or len(mask) != 4:
        return 24
    number = int.from_bytes(mask, "big")
    ones = number.bit_count()
    if number != (0xFFFFFFFF << (32 - ones)) & 0xFFFFFFFF:
        raise DhcpError(f"{ipaddress.IPv4Address(mask)} is no mask")
    return ones


def _host(content: bytes | None) -> str | None:
    """The first address of a list; None when there is none."""
    if content is None or len(content) < 4 or not any(content[:4]):
        return None
    return str(ipaddress.IPv4Address(content[:4]))


def _seconds(content: bytes | None) -> int | None:
    return None if content is None or len(content) != 4 else int.from_bytes(content, "big")


PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""From one question to the next without an answer; the last repeats."""
KEEPING = 2
"""After so many requests for the same address, any address is requested: a server that does not know it may keep silent."""
LONGEST_S = 300.0
"""An address is requested again after half of its time, at the latest after this: a modem that gives another one does not say so."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a server gave."""

    address: str
    prefix: int
    router: str | None


class Lease:
    """For one interface. ``hardware``: its MAC, 6 bytes; ``address``: what it has; ``number``: makes transaction numbers."""

    def __init__(self, hardware: bytes, address: str | None, now_s: float, number: Callable[[], int]) -> None:
        self._hardware, self._number = hardware, number
        self._address = address
        self._offer: Answer | None = None
        self._transaction = number()
        self._tries = 0
        self.due_s = now_s
        """When ``question`` is to be sent next; CLOCK_MONOTONIC seconds."""

    def again(self, now_s: float) -> None:
        """The link was away: whoever is there now gets a request at once."""
        self._begin(now_s)

    def _begin(self, due_s: float) -> None:
        self._transaction, self._tries, self._offer, self.due_s = self._number(), 0, None, due_s

    def question(self, now_s: float) -> bytes:
        """What to send now; sets when to ask again."""
        self.due_s = now_s + PAUSES_S[min(self._tries, len(PAUSES_S) - 1)]
        self._tries += 1
        if self._offer is not None:
            offer, self._offer = self._offer, None  # one question for it; without an answer from the beginning
            return request(self._transaction, self._hardware, offer.address, offer.server)
        if self._address is not None and self._tries <= KEEPING:
            return request(self._transaction, self._hardware, self._address, None)
        return discover(self._transaction, self._hardware)

    def take(self, answer: Answer, now_s: float) -> Given | None:
        """What is given from now on; None while nothing is, or by an answer to somebody else."""
        if (answer.transaction, answer.hardware) != (self._transaction, self._hardware):
            return None
        if answer.kind == "offer":
            if answer.server is not None:
                self._offer, self.due_s = answer, now_s
            return None
        if answer.kind == "refused":
            self._address = None
            self._begin(now_s)
            return None
        half_s = answer.renew_s or (answer.lease_s or 2 * LONGEST_S) / 2
        self._address = answer.address
        self._begin(now_s + min(LONGEST_S, max(PAUSES_S[0], half_s)))
        return Given(answer.address, answer.prefix, answer.router)


# ---------------------------------------------------------------------------------------------------------------------
# The namespace behind its NAT, and who keeps the modem's address in it.


log = logging.getLogger(__name__)

FOLDER = Path("/run/netns")
_NETWORK = "198.18.71"
_CARRIER_S = 1.5
"""An interface that changed its namespace is down for a moment; that is not reported as an outage of its own."""
_RULES = """
table ip tandem {
    chain before {
        type nat hook prerouting priority -100
    }
    chain out {
        type nat hook postrouting priority 100
        oifname "MODEM" masquerade
    }
    chain in {
        type filter hook input priority 0
        iifname "MODEM" meta l4proto tcp counter drop
    }
}
"""
"""What the tracking of connections does not accept (as a segment out of its window) is not translated. It would be taken for the
namespace's own and answered with a reset, which ends the server's side of the connection: so nothing is answered. Before Linux 4.18
answers are translated back only where there is a chain before routing, too."""
_LIBERAL = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal"
_OURS = "/proc/thread-self/ns/net"


@dataclass(frozen=True, slots=True)
class Nat:
    """Path ``index``'s NAT: ``interface``, ``address`` and ``gateway`` are what this namespace sees of it."""

    index: int

    @property
    def namespace(self) -> str:
        """Its name, for ``ip -n``. Of the namespace that the calling thread is in."""
        return f"tandem-{Path(_OURS).stat().st_ino}-{self.index}"

    @property
    def interface(self) -> str:
        """Our end of the veth pair."""
        return f"tnat{self.index}"

    @property
    def inner(self) -> str:
        """The other end."""
        return f"tnat{self.index}n"

    @property
    def address(self) -> str:
        """Of our end."""
        return f"{_NETWORK}.{4 * self.index + 1}"

    @property
    def gateway(self) -> str:
        """Of the other end."""
        return f"{_NETWORK}.{4 * self.index + 2}"

    @property
    def file(self) -> Path:
        """Where the namespace can be entered."""
        return FOLDER / self.namespace

    @property
    def inode(self) -> int | None:
        """Tells the namespace from an earlier one of its name; None when there is none."""
        try:
            return self.file.stat().st_ino
        except OSError:
            return None

    def exists(self) -> bool:
        """Whether there is something to take down."""
        return self.file.exists()

    def inside(self) -> dict[str, Interface]:
        """The modem's interface behind it, by name; empty while it has gone. IpError when the namespace is gone.

        Its name stands on our inner end, as an alias: a new namespace may have interfaces of its own (tunl0, gre0, sit0 on Linux 4.14)."""
        there = interfaces("-d", "-n", self.namespace)  # without -d there is no alias
        modem = there[self.inner].alias if self.inner in there else None
        if modem is None:  # made by a collector that wrote no name
            return {n: i for n, i in there.items() if n not in ("lo", self.inner)}
        return {n: i for n, i in there.items() if n == modem}

    def modem_gateway(self) -> str | None:
        """The next hop behind it now. IpError when it is gone."""
        for route in ip_json("-n", self.namespace, "-4", "route", "show", "default", "protocol", PROTOCOL):
            if "gateway" in route:
                return str(route["gateway"])
        return None

    def make(self, interface: str, gateway: str | None) -> None:
        """Put ``interface``, whose next hop is ``gateway``, behind it. IpError when that cannot be done, with everything as it was."""
        self.remove()
        try:
            self._make(interface, gateway)
        except (IpError, OSError) as error:
            self.remove()
            raise IpError(str(error)) from error

    def _make(self, interface: str, gateway: str | None) -> None:
        held = _Held.of((), interface)
        ip("netns", "add", self.namespace)
        peer = ("peer", "name", self.inner, "netns", self.namespace)
        ip("link", "add", self.interface, *(("mtu", str(held.mtu)) if held.mtu else ()), "type", "veth", *peer)
        ip("address", "add", f"{self.address}/30", "dev", self.interface)
        there = ("-n", self.namespace)
        ip(*there, "address", "add", f"{self.gateway}/30", "dev", self.inner)
        ip(*there, "link", "set", self.inner, "alias", interface)
        if held.mtu:
            ip(*there, "link", "set", self.inner, "mtu", str(held.mtu))
        for name in ("lo", self.inner):
            ip(*there, "link", "set", name, "up")
        ip("link", "set", self.interface, "up")
        # DHCP's port without CAP_NET_BIND_SERVICE: nobody but us is in there.
        settings = "echo 1 >ip_forward; echo 68 >ip_unprivileged_port_start"
        self._enter("sh", "-ec", f"cd /proc/sys/net/ipv4; {settings}")
        self._enter("nft", "-f", "-", given=_RULES.replace("MODEM", interface))
        # The file is there once NAT is; without it only the rule against answering helps.
        self._enter("sh", "-c", f"! [ -e {_LIBERAL} ] || echo 1 >{_LIBERAL}")
        ip("link", "set", interface, "netns", self.namespace)
        held.put(there, interface)
        hop = ("via", gateway) if gateway else ()
        ip(*there, "route", "replace", "default", *hop, "dev", interface, "protocol", PROTOCOL)
        until = time.monotonic() + _CARRIER_S
        while not self.inside()[interface].usable and time.monotonic() < until:
            time.sleep(0.05)

    def _enter(self, program: str, *arguments: str, given: str = "") -> None:
        """Run a program inside."""
        found = [
            shutil.which(p, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") for p in ("nsenter", program)
        ]
        if None in found:
            raise IpError(f"the program {program} is missing; hint: install the package nftables")
        command = [str(found[0]), f"--net={self.file}", "--", str(found[1]), *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=10, check=False)
        if done.returncode != 0:
            raise IpError(f"{program} in {self.namespace}: {' '.join(done.stderr.split()) or done.returncode}")

    def remove(self) -> None:
        """Put back what is behind it, with its addresses and routes, and take it down; also one that an earlier life left."""
        if not self.exists():
            return
        try:
            behind = self.inside()
        except IpError:
            self.file.unlink(missing_ok=True)  # a name without a namespace: the machine's mounts went, the file stayed
            behind = {}
        for name in behind:
            there = ("-n", self.namespace)
            held = _Held.of(there, name)
            # A thread's number will do where a process's is asked for; another thread may be in another namespace.
            to = ("netns", str(threading.get_native_id()))
            try:
                ip(*there, "link", "set", name, *to)
                back = name
            except IpError as error:
                if "exists" not in str(error):
                    raise
                before = set(interfaces())
                ip(*there, "link", "set", name, *to, "name", "eth%d")  # its name was taken meanwhile
                back = next(iter(set(interfaces()) - before))
            held.put((), back)
        quietly(lambda: ip("link", "delete", self.interface))
        if self.exists():
            ip("netns", "delete", self.namespace)


@dataclass(frozen=True, slots=True)
class _Held:
    """What an interface loses when it changes its namespace: IPv4 addresses, and default routes with metric and protocol."""

    addresses: tuple[str, ...]
    routes: tuple[dict[str, Any], ...]
    mtu: int | None

    @classmethod
    def of(cls, where: tuple[str, ...], interface: str) -> _Held:
        row = ip_json(*where, "address", "show", "dev", interface)[0]
        addresses = tuple(
            f"{a['local']}/{a['prefixlen']}" for a in row.get("addr_info", []) if a.get("family") == "inet"
        )
        routes = ip_json(*where, "-4", "route", "show", "default", "dev", interface)
        return cls(addresses, tuple(r for r in routes if str(r.get("protocol")) != PROTOCOL), row.get("mtu"))

    def put(self, where: tuple[str, ...], interface: str) -> None:
        for address in self.addresses:
            ip(*where, "address", "replace", address, "broadcast", "+", "dev", interface)
        ip(*where, "link", "set", interface, "up")
        for route in self.routes:
            via = ("via", str(route["gateway"])) if "gateway" in route else ()
            metric = ("metric", str(route["metric"])) if "metric" in route else ()
            protocol = ("protocol", str(route.get("protocol", "static")))
            ip(*where, "route", "replace", "default", *via, "dev", interface, *metric, *protocol)


_CLIENT_PORT, _SERVER_PORT = 68, 67


class NatLease:
    """For one NAT that is up, and one thread. OSError, IpError: the namespace or its modem has gone, or has no MAC to ask with."""

    def __init__(self, nat: Nat) -> None:
        self._there = ("-n", nat.namespace)
        self.name = next(iter(nat.inside()), "")
        row = next(iter(ip_json(*self._there, "address", "show", "dev", self.name)), {}) if self.name else {}
        hardware = (
            bytes.fromhex(str(row.get("address", "")).replace(":", "")) if row.get("link_type") == "ether" else b""
        )
        if len(hardware) != 6:
            raise IpError(f"{self.name or 'no interface'} in {nat.namespace} speaks no DHCP")
        self._held = [f"{a['local']}/{a['prefixlen']}" for a in row.get("addr_info", []) if a.get("family") == "inet"]
        address = self._held[0].split("/")[0] if self._held else None
        self._router = nat.modem_gateway()
        self._up: bool | None = None
        self._lease = Lease(hardware, address, time.monotonic(), lambda: random.getrandbits(32))
        self._nat = nat
        self._socket = socket_in(nat.file, self._open)

    def _open(self) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.name.encode() + b"\0")
            made.bind(("", _CLIENT_PORT))
            made.setblocking(False)
        except BaseException:
            made.close()
            raise
        return made

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def due_s(self) -> float:
        """When ``turn`` is to be called, CLOCK_MONOTONIC seconds."""
        return self._lease.due_s

    def seen(self) -> None:
        """Something changed behind the NAT: a link that came back is asked at once. IpError when the namespace has gone."""
        modem = self._nat.inside().get(self.name)
        up = modem is not None and modem.usable
        if up and self._up is False:
            self._lease.again(time.monotonic())
        self._up = up

    def turn(self) -> Given | None:
        """Take the answers, ask what is due; what was given and differs from what there was, already set. IpError as ``ip``."""
        changed = None
        while True:
            try:
                data = self._socket.recv(4096)
            except OSError:  # nothing more, or the link went down, which netlink tells
                break
            try:
                given = self._lease.take(parse(data), time.monotonic())
            except DhcpError:
                continue  # anybody may send anything to this port
            if given is not None and self._set(given):
                changed = given
        now = time.monotonic()
        if now >= self._lease.due_s:
            question = self._lease.question(now)
            try:
                self._socket.sendto(question, ("255.255.255.255", _SERVER_PORT))
            except OSError:
                return changed  # the link is down just now: the next question is due already
        return changed

    def _set(self, given: Given) -> bool:
        address = f"{given.address}/{given.prefix}"
        router = given.router or self._router
        if self._held == [address] and router == self._router:
            return False
        ip(*self._there, "address", "replace", address, "broadcast", "+", "dev", self.name)
        hop = ("via", router) if router else ()
        # Before the old address goes, which takes the routes through its network along.
        ip(*self._there, "route", "replace", "default", *hop, "dev", self.name, "protocol", PROTOCOL)
        for old in self._held:
            if old != address:
                ip(*self._there, "address", "delete", old, "dev", self.name)
        # An address that was the first of its network takes the others along, unless they are promoted.
        ip(*self._there, "address", "replace", address, "broadcast", "+", "dev", self.name)
        ip(*self._there, "route", "replace", "default", *hop, "dev", self.name, "protocol", PROTOCOL)
        self._held, self._router = [address], router
        return True

    def close(self) -> None:
        self._socket.close()


class Leases:
    """One ``NatLease`` a NAT. A NAT whose modem has gone is left to the next check, which takes it down."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Nat, int | None], NatLease | None] = {}
        """By NAT and its namespace, which may be another one of the same name. None: the modem speaks no DHCP."""

    def keep(self, nats: Sequence[Nat]) -> None:
        """Those NATs are up now."""
        wanted = {(nat, nat.inode) for nat in nats}
        for gone in self._kept.keys() - wanted:
            lease = self._kept.pop(gone)
            if lease is not None:
                lease.close()
        for fresh in wanted - self._kept.keys():
            self._kept[fresh] = None
            try:
                self._kept[fresh] = NatLease(fresh[0])
            except (IpError, OSError) as error:
                log.warning("%s: its address is not kept by DHCP: %s", fresh[0].interface, error)

    def _open(self) -> list[tuple[Nat, NatLease]]:
        return [(nat, lease) for (nat, _), lease in self._kept.items() if lease is not None]

    def filenos(self) -> list[int]:
        """For a selector."""
        return [lease.fileno() for _, lease in self._open()]

    def due_s(self) -> float:
        """When ``turn`` is to be called, CLOCK_MONOTONIC seconds; infinite while nothing is kept."""
        return min((lease.due_s for _, lease in self._open()), default=math.inf)

    def seen(self) -> None:
        """Something changed, here or behind a NAT."""
        for _, lease in self._open():
            with contextlib.suppress(IpError):
                lease.seen()

    def turn(self) -> list[tuple[Nat, str | None, str]]:
        """Request and take what is due; the NAT of each modem whose address or next hop changed, the next hop now, and what changed."""
        changed = []
        for nat, lease in self._open():
            with contextlib.suppress(IpError):
                given = lease.turn()
                if given is not None:
                    now = f"now {given.address}, gateway {given.router or 'none'}"
                    changed.append((nat, nat.modem_gateway(), f"{lease.name} behind {nat.interface}: {now}"))
        return changed

    def close(self) -> None:
        self.keep(())
