"""Keeps the address of a modem behind a NAT: its own DHCP client lost sight of the interface when that went there."""

from __future__ import annotations

import random
import socket
import time

from tandem.mptcp.dhcp import DhcpError, parse
from tandem.mptcp.iproute import IpError, ip, ip_json
from tandem.mptcp.lease import Given, Lease
from tandem.mptcp.nat import Nat
from tandem.mptcp.netlink import socket_in
from tandem.mptcp.routing import PROTOCOL

_CLIENT, _SERVER = 68, 67


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
            made.bind(("", _CLIENT))
            made.setblocking(False)
        except BaseException:
            made.close()
            raise
        return made

    def fileno(self) -> int:
        """For a selector."""
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
                self._socket.sendto(question, ("255.255.255.255", _SERVER))
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
        """Keep it no more."""
        self._socket.close()
