"""The list of names, in Tranco's format (``rank,domain`` a line), and the deny list: who is never asked nor pinged. Pure."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field

from tandem.mptcp.dns import DnsError, normal_name

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address as NAT64 and DNS64 show it


class ListError(ValueError):
    """A line of a list cannot be read; names the line and the mend."""


@dataclass(frozen=True, slots=True)
class Name:
    """One name of the list. ``rank``: from 1."""

    rank: int
    name: str


@dataclass(frozen=True, slots=True)
class NameList:
    """The names taken of a list, and the hash of the whole file, by which it is known again."""

    names: tuple[Name, ...]
    sha256: str


def read_names(raw: bytes, first: int) -> NameList:
    """The ``first`` names of the file ``raw``; ListError. Empty lines are left out, a name that comes twice counts once."""
    names: dict[str, Name] = {}
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if len(names) >= first:
            break
        text = line.strip()
        if not text:
            continue
        try:
            name = _line(text.decode("ascii"))
        except (ValueError, DnsError) as error:
            raise ListError(f"line {number}: {error}; hint: rank,domain as Tranco writes it") from error
        names.setdefault(name.name, name)
    if not names:
        raise ListError("line 1: no name; hint: rank,domain as Tranco writes it")
    return NameList(tuple(names.values()), hashlib.sha256(raw).hexdigest())


def _line(text: str) -> Name:
    rank, comma, domain = text.partition(",")
    if not comma or not rank.isdecimal() or not 1 <= int(rank) <= 10**9:
        raise ValueError(f"{text[:60]!r} is not rank,domain")
    return Name(int(rank), normal_name(domain))


@dataclass(frozen=True, slots=True)
class DenyList:
    """``domains`` and all names below them; ``networks`` and all addresses in them."""

    domains: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = field(default=())

    def denies_name(self, name: str) -> bool:
        """Whether ``name`` or a domain above it is on the list."""
        labels = name.split(".")
        return any(".".join(labels[i:]) in self.domains for i in range(len(labels)))

    def why_not(self, address: str) -> str | None:
        """Why ``address`` must not be pinged: ``denied``, or ``private`` for all that is not a public host's; None when it may be."""
        ip = ipaddress.ip_address(address)
        hidden = _within(ip)
        if any(not_public(a) for a in (hidden if ip in _TRANSLATED else (ip, *hidden))):
            return "private"
        for a in (ip, *hidden):
            if any(a.version == n.version and a in n for n in self.networks):
                return "denied"
        return None


def read_deny(text: str) -> DenyList:
    """One domain, address or network (CIDR) a line; ``#`` begins a comment; ListError."""
    domains, networks = set[str](), list[Network]()
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        try:
            networks.append(ipaddress.ip_network(entry, strict=False))
            continue
        except ValueError:
            pass  # then it must be a name
        try:
            if "/" in entry or ":" in entry:
                raise DnsError(f"{entry[:60]!r} is no network")
            domains.add(normal_name(entry))
        except DnsError as error:
            raise ListError(
                f"line {number}: {error}; hint: a domain, an address or a network such as 192.0.2.0/24"
            ) from error
    return DenyList(frozenset(domains), tuple(networks))


def not_public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Private, loopback, link-local, multicast, reserved, shared (RFC 6598) or unspecified: nobody's public server."""
    return ip.is_private or ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_loopback or not ip.is_global


def _within(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Sequence[ipaddress.IPv4Address]:
    """The IPv4 addresses that an IPv6 address carries: mapped, 6to4, NAT64."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ()
    found = [a for a in (ip.ipv4_mapped, ip.sixtofour) if a is not None]
    if ip in _TRANSLATED:
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return found
