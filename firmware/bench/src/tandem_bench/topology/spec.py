"""What networks a bench has, and the addresses in them (documented ranges only: RFC 5737, RFC 1918)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path

from tandem_bench.link import Constant, Played

Offer = Constant | Played
SERVER_NETWORK = IPv4Network("203.0.113.0/24")
SERVER_ADDRESSES = (IPv4Address("203.0.113.10"), IPv4Address("203.0.113.11"))
SERVER_NAME = "server.tandem.test"
MAX_ACCESSES = 63


class SpecError(ValueError):
    """The topology asked for cannot be; the message is one line."""


@dataclass(frozen=True, slots=True)
class Access:
    """One network the probe can use: the probe's interface, the link, the far side's namespace with its NAT and resolver."""

    path: str
    namespace: str
    interface: str
    operator: str
    offer: Offer
    network: IPv4Network
    """The link's /30: gateway first, probe second."""
    uplink: IPv4Network
    """The /30 between NAT and internet: internet first, NAT (the public address) second."""
    metric: int
    near: str = "probe"
    """The namespace in which the link's near end lies: the probe's own (``probe``, of further ones ``probe-…``), or that of a modem which
    the probe reaches by USB."""

    @property
    def gateway(self) -> IPv4Address:
        """The far end of the link: next hop and resolver."""
        return self.network[1]

    @property
    def address(self) -> IPv4Interface:
        """The probe's own, with its prefix length."""
        return IPv4Interface((self.network[2], self.network.prefixlen))

    @property
    def internet_side(self) -> IPv4Address:
        """The internet's end of the uplink."""
        return self.uplink[1]

    @property
    def public_address(self) -> IPv4Address:
        """What the server sees as the peer."""
        return self.uplink[2]


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """All networks of one bench. ``log_folder``: where each link writes ``link-PATH.jsonl``; None: no logs."""

    accesses: tuple[Access, ...]
    servers: int = 1
    """Addresses of the server, 1 or 2."""
    sites: Mapping[str, IPv4Address] = field(default_factory=dict)
    """Names beside the server's that operators' resolvers know, at addresses of the server's machine: what a survey looks at."""
    log_folder: Path | None = None
    seed: int = 1
    congestion_control: str = "cubic"
    """Of what the server sends: Debian's default, whatever this machine's is."""
    links_later: bool = False
    """Entering the topology starts no links; ``Topology.start_links`` does, when their epoch is known."""
    sysctls: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """More settings: namespace → dotted name → value."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.accesses) <= MAX_ACCESSES:
            raise SpecError(f"{len(self.accesses)} access networks; 1 to {MAX_ACCESSES} are possible")
        if self.servers not in (1, 2):
            raise SpecError(f"{self.servers} server addresses; 1 or 2 are possible")
        for what in ("path", "namespace", "interface"):
            names = [getattr(access, what) for access in self.accesses]
            if len(set(names)) != len(names):
                raise SpecError(f"two access networks have the same {what}: {', '.join(names)}")

    @property
    def probes(self) -> tuple[str, ...]:
        """The namespaces of probes, each with its own links."""
        return tuple(dict.fromkeys(("probe", *(a.near for a in self.accesses if a.near.startswith("probe-")))))

    @property
    def server_addresses(self) -> tuple[IPv4Address, ...]:
        """One address or two."""
        return SERVER_ADDRESSES[: self.servers]


def mobile(path: str, index: int, offer: Offer, operator: str | None = None) -> Access:
    """A mobile operator: ``wwanINDEX`` to ``op-PATH``, 10.64.INDEX.0/30. ``index`` from 0 in the order of the modems."""
    network = IPv4Network(f"10.64.{index}.0/30")
    return _access(path, f"op-{path}", f"wwan{index}", operator or path.upper(), index, offer, network, 700)


def wifi(index: int, offer: Offer) -> Access:
    """A Wi-Fi at home: ``wlan0`` to the router ``wifi``. ``index``: not taken by another access."""
    return _access("wifi", "wifi", "wlan0", "wifi", index, offer, IPv4Network("192.168.64.0/30"), 600)


def wired(index: int, offer: Offer) -> Access:
    """A wired network: ``eth0`` to the router ``wired``. ``index``: not taken by another access."""
    return _access("wired", "wired", "eth0", "wired", index, offer, IPv4Network("192.168.65.0/30"), 100)


def commuting(
    offers: Mapping[str, Offer], wifi_offer: Offer | None = None, wired_offer: Offer | None = None
) -> tuple[Access, ...]:
    """One mobile operator a path of ``offers``, in order, and beside them what else is offered."""
    accesses = [mobile(path, index, offer) for index, (path, offer) in enumerate(offers.items())]
    if wifi_offer is not None:
        accesses.append(wifi(len(accesses), wifi_offer))
    if wired_offer is not None:
        accesses.append(wired(len(accesses), wired_offer))
    return tuple(accesses)


def _access(
    path: str,
    namespace: str,
    interface: str,
    operator: str,
    index: int,
    offer: Offer,
    network: IPv4Network,
    metric: int,
) -> Access:
    if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", path) is None:
        raise SpecError(f"path {path!r}: expected 1 to 32 of a-z, 0-9 and -")
    if not 0 <= index < MAX_ACCESSES:
        raise SpecError(f"index {index} of path {path}: expected 0 to {MAX_ACCESSES - 1}")
    # Metrics as NetworkManager gives them: wired 100, Wi-Fi 600, mobile 700; the first of a kind is preferred.
    uplink = IPv4Network((int(IPv4Address("198.51.100.0")) + 4 * index, 30))
    return Access(path, namespace, interface, operator, offer, network, uplink, metric + index)
