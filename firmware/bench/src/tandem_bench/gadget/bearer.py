"""The modem's inside on the network: what it gives its host by DHCP, and the way from there onto the radio link.

A stick in router mode: its host gets an address of the stick's own small network, and the stick translates to the one that the
operator gave it. Two sticks of a kind have the same network; ours have one each unless told otherwise.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from tandem_bench.topology.requirements import MachineError

LEASE_S = 120
"""The shortest that dnsmasq takes: an address that was lost with the plug is asked for anew anyway."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """``interface``: our end of the USB network function; ``uplink``: the link's near end; ``resolver``: the operator's."""

    interface: str
    uplink: str
    network: IPv4Network
    resolver: IPv4Address

    @property
    def gateway(self) -> IPv4Address:
        """The modem as its host sees it."""
        return self.network[1]

    @property
    def address(self) -> IPv4Address:
        """What the host gets."""
        return self.network[100]


def network_of(number: int, *, alike: bool = False) -> IPv4Network:
    """The small network of modem ``number`` from 0; with ``alike`` all have the same, as sticks of one kind do."""
    return IPv4Network(f"192.168.{8 if alike else 8 + number}.0/24")


def ip_batch(bearer: Bearer) -> str:
    """For ``ip -batch``, in the modem's namespace."""
    size = bearer.network.prefixlen
    return f"address replace {bearer.gateway}/{size} dev {bearer.interface}\nlink set {bearer.interface} up\n"


def nat(bearer: Bearer) -> str:
    """For ``nft -f``, in the modem's namespace."""
    return f"""table ip modem {{
    chain postrouting {{
        type nat hook postrouting priority srcnat;
        oifname "{bearer.uplink}" masquerade
    }}
}}
"""


def dhcp_server(bearer: Bearer) -> list[str]:
    """dnsmasq's command line."""
    return [
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--log-facility=-", "--port=0",
        "--leasefile-ro", "--dhcp-authoritative", "--bind-dynamic", f"--interface={bearer.interface}",
        "--except-interface=lo", "--no-ping",
        f"--dhcp-range={bearer.address},{bearer.address},{bearer.network.netmask},{LEASE_S}",
        f"--dhcp-option=option:router,{bearer.gateway}", f"--dhcp-option=option:dns-server,{bearer.resolver}",
    ]  # fmt: skip


class DhcpServer:
    """The modem's DHCP server, from ``start`` to ``stop``. ``command`` puts a command line into the modem's namespace."""

    def __init__(self, bearer: Bearer, command: Callable[[list[str]], list[str]]) -> None:
        self._argv = command(dhcp_server(bearer))
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it answers; MachineError with its own line when it does not start."""
        self._process = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None  # noqa: S101 - opened as a pipe above
        last = "it ended without a word"
        for line in self._process.stderr:
            # The range is told last. It says two lines for each lease after that: a pipe takes hundreds of them.
            if "DHCP, IP range" in line:
                return
            last = line.strip() or last
        self.stop()
        raise MachineError(f"the modem's DHCP server does not start: {last}")

    def stop(self) -> None:
        """End it. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
