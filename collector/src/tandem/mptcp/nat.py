"""A modem whose address another path has already: behind a NAT in a network namespace of its own, joined by a veth pair.

    this namespace                         │ tandem-INODE-I
    tnatI 198.18.71.(4I+1)/30 ── veth ─────┼── tnatIn (4I+2) ── forwarding, masquerade ── eth2 192.168.8.100/24 ── 192.168.8.1

The probe, and the Multipath TCP sockets in its one namespace, see tnatI only: an address of its own and a next hop. 198.18.0.0/15 is
kept for measuring benches (RFC 2544), so that no operator's network collides with it in turn.

The namespace has a name, in /run/netns as ``ip netns`` makes it. So it outlives a collector that was killed, and with it the
interface's addresses and routes, which an interface loses when it leaves a namespace: the next start finds it by its name and puts
everything back. (A namespace without a name would end with the collector, and the kernel would give the interface back bare, to the
machine's first namespace.) INODE is the namespace that the collector itself is in: two collectors on one machine do not meet.

Needs CAP_SYS_ADMIN beside CAP_NET_ADMIN, and the program nft. The interface's DHCP client loses it by this; ``NatKeeper`` takes over.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.mptcp.dhcp import Answer, DhcpError, Lease, parse
from tandem.mptcp.iproute import PROTOCOL, Interface, IpError, interfaces, ip, ip_json, quietly
from tandem.mptcp.netlink import socket_in, subscribe_routes

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
        return FOLDER / self.namespace

    @property
    def inode(self) -> int | None:
        """Tells the namespace from an earlier one of its name; None when there is none."""
        try:
            return self.file.stat().st_ino
        except OSError:
            return None

    def exists(self) -> bool:
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


class NatKeeper:
    """Hears what changes behind one NAT that is up, and keeps its modem's address by DHCP, where the modem speaks that. For one thread.
    OSError when the namespace has gone."""

    def __init__(self, nat: Nat) -> None:
        self._nat, self._there = nat, ("-n", nat.namespace)
        self.changes = subscribe_routes(nat.file)
        self._name = ""
        self._up: bool | None = None
        self._router: str | None = None
        self._held: list[str] = []
        self._lease: Lease | None = None
        self._socket: socket.socket | None = None
        try:
            self._begin()
        except (IpError, OSError) as error:
            log.warning("%s: its address is not kept by DHCP: %s", nat.interface, error)

    def _begin(self) -> None:
        nat = self._nat
        self._name = next(iter(nat.inside()), "")
        row = next(iter(ip_json(*self._there, "address", "show", "dev", self._name)), {}) if self._name else {}
        hardware = (
            bytes.fromhex(str(row.get("address", "")).replace(":", "")) if row.get("link_type") == "ether" else b""
        )
        if len(hardware) != 6:
            raise IpError(f"{self._name or 'no interface'} in {nat.namespace} speaks no DHCP")
        self._held = [f"{a['local']}/{a['prefixlen']}" for a in row.get("addr_info", []) if a.get("family") == "inet"]
        address = self._held[0].split("/")[0] if self._held else None
        self._router = nat.modem_gateway()
        self._socket = socket_in(nat.file, self._open)
        self._lease = Lease(hardware, address, time.monotonic(), lambda: random.getrandbits(32))

    def _open(self) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._name.encode() + b"\0")
            made.bind(("", _CLIENT_PORT))
            made.setblocking(False)
        except BaseException:
            made.close()
            raise
        return made

    def filenos(self) -> list[int]:
        return [one.fileno() for one in (self.changes, self._socket) if one is not None]

    @property
    def due_s(self) -> float:
        """When ``turn`` is to be called, CLOCK_MONOTONIC seconds; infinite where no address is kept."""
        return math.inf if self._lease is None else self._lease.due_s

    def seen(self) -> None:
        """Something changed behind the NAT: a link that came back is asked at once."""
        if self._lease is None:
            return
        try:
            modem = self._nat.inside().get(self._name)
        except IpError:
            return  # the namespace has gone: the next check takes the NAT down
        up = modem is not None and modem.usable
        if up and self._up is False:
            self._lease.again(time.monotonic())
        self._up = up

    def turn(self) -> tuple[str | None, str] | None:
        """Take the answers and ask what is due. When the modem's address or next hop became another: the next hop now, and what changed,
        in words; it has been set."""
        if self._lease is None or self._socket is None:
            return None
        try:
            given = self._exchange(self._lease, self._socket)
            if given is None:
                return None
            now = f"now {given.address}, gateway {given.router or 'none'}"
            return self._nat.modem_gateway(), f"{self._name} behind {self._nat.interface}: {now}"
        except IpError:
            return None  # as in ``seen``

    def _exchange(self, lease: Lease, made: socket.socket) -> Answer | None:
        """What was given and differs from what there was."""
        changed = None
        while True:
            try:
                data = made.recv(4096)
            except OSError:  # nothing more, or the link went down, which netlink tells
                break
            try:
                given = lease.take(parse(data), time.monotonic())
            except DhcpError:
                continue  # anybody may send anything to this port
            if given is not None and self._set(given):
                changed = given
        now = time.monotonic()
        if now >= lease.due_s:
            question = lease.question(now)
            with contextlib.suppress(OSError):  # the link is down just now: the next question is due already
                made.sendto(question, ("255.255.255.255", _SERVER_PORT))
        return changed

    def _set(self, given: Answer) -> bool:
        address = f"{given.address}/{given.prefix}"
        router = given.router or self._router
        if self._held == [address] and router == self._router:
            return False
        ip(*self._there, "address", "replace", address, "broadcast", "+", "dev", self._name)
        hop = ("via", router) if router else ()
        # Before the old address goes, which takes the routes through its network along.
        ip(*self._there, "route", "replace", "default", *hop, "dev", self._name, "protocol", PROTOCOL)
        for old in self._held:
            if old != address:
                ip(*self._there, "address", "delete", old, "dev", self._name)
        # An address that was the first of its network takes the others along, unless they are promoted.
        ip(*self._there, "address", "replace", address, "broadcast", "+", "dev", self._name)
        ip(*self._there, "route", "replace", "default", *hop, "dev", self._name, "protocol", PROTOCOL)
        self._held, self._router = [address], router
        return True

    def close(self) -> None:
        self.changes.close()
        if self._socket is not None:
            self._socket.close()
