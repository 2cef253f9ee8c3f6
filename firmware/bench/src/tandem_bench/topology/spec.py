"""Names and addresses of the bench's hosts.

| host | namespace | addresses |
|---|---|---|
| probe | probe | 10.64.N.2 on wwanN, one per operator N; 192.168.1.2 on wlan0 when asked |
| operator N | op-NAME | 10.64.N.1 to the probe, 198.18.N.2 to the internet (its NAT's public address), resolver 10.64.N.53 |
| home router | wifi | 192.168.1.1 to the probe, 198.18.200.2 to the internet, resolver 192.168.1.53 |
| internet | internet | 198.18.N.1, 203.0.113.1 |
| server | server | 203.0.113.10, and .11 when it has two |

198.18.0.0/15 is the range for benchmarks (RFC 2544), 203.0.113.0/24 for documentation (RFC 5737), 10.64/10 as carriers use it.
"""

from __future__ import annotations

from dataclasses import dataclass

SERVER_NAME = "server.tandem.test"
SERVER_ADDRESSES = ("203.0.113.10", "203.0.113.11")
SERVER_ROUTER = "203.0.113.1"
WIFI = "wifi"


@dataclass(frozen=True)
class OperatorNet:
    """Addresses of one access network: an operator's, or the home router's."""

    name: str
    namespace: str
    interface: str
    probe_address: str
    gateway_address: str
    prefix_length: int
    public_address: str
    upstream_address: str
    resolver: str
    metric: int


@dataclass(frozen=True)
class TopologySpec:
    """``operators``: names (``A``, ``B``), 1 to 8. ``wifi``: one more path through a home router. ``server_addresses``: 1 or 2."""

    operators: tuple[str, ...]
    wifi: bool = False
    server_addresses: int = 1

    def __post_init__(self) -> None:
        if not 1 <= len(self.operators) <= 8 or len(set(self.operators)) != len(self.operators):
            raise ValueError(f"operators {self.operators}: give 1 to 8 different names")
        if not 1 <= self.server_addresses <= len(SERVER_ADDRESSES):
            raise ValueError(f"server_addresses {self.server_addresses}: give 1 or 2")

    def networks(self) -> list[OperatorNet]:
        """Every access network, the operators first, in the order of their default routes' metrics."""
        nets = [
            OperatorNet(
                name=name,
                namespace=f"op-{name.lower()}",
                interface=f"wwan{n}",
                probe_address=f"10.64.{n}.2",
                gateway_address=f"10.64.{n}.1",
                prefix_length=30,
                public_address=f"198.18.{n}.2",
                upstream_address=f"198.18.{n}.1",
                resolver=f"10.64.{n}.53",
                metric=700 + n,
            )
            for n, name in enumerate(self.operators)
        ]
        if self.wifi:
            nets.append(
                OperatorNet(
                    name=WIFI,
                    namespace=WIFI,
                    interface="wlan0",
                    probe_address="192.168.1.2",
                    gateway_address="192.168.1.1",
                    prefix_length=24,
                    public_address="198.18.200.2",
                    upstream_address="198.18.200.1",
                    resolver="192.168.1.53",
                    metric=600,
                )
            )
        return nets
