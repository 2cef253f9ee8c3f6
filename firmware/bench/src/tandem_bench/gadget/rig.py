"""The bench in motion with its modems on USB: links, operators and server as ever, the probe outside, behind the plugs.

Inside a modem, on the network, is a stick in router mode: its host gets an address of the stick's own small network by DHCP, and the
stick translates to the one that the operator gave it. Two sticks of a kind have the same network; ours have one each unless told otherwise.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from tandem_bench.gadget.description import GadgetError
from tandem_bench.run.programs import Owner, Program
from tandem_bench.run.rig import Rig
from tandem_bench.scenario import Played
from tandem_bench.topology.topology import Dnsmasq

READY_S = 120.0
"""For a modem on USB: on an emulated processor Python alone takes seconds to start."""
LEASE_S = 120
"""The shortest that dnsmasq takes: an address that was lost with the plug is asked for anew anyway."""


_NAT = """table ip modem {{
    chain postrouting {{
        type nat hook postrouting priority srcnat;
        oifname "{uplink}" masquerade
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Bearer:
    """``interface``: our end of the USB network function; ``resolver``: the operator's."""

    interface: str
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


def dhcp_server(bearer: Bearer) -> list[str]:
    """dnsmasq's command line."""
    return [
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--log-facility=-", "--port=0",
        "--leasefile-ro", "--dhcp-authoritative", "--bind-dynamic", f"--interface={bearer.interface}",
        "--except-interface=lo", "--no-ping",
        f"--dhcp-range={bearer.address},{bearer.address},{bearer.network.netmask},{LEASE_S}",
        f"--dhcp-option=option:router,{bearer.gateway}", f"--dhcp-option=option:dns-server,{bearer.resolver}",
    ]  # fmt: skip


@dataclass(frozen=True)
class UsbPath:
    """One path as the probe will find it: which controller its modem hangs on, and what DHCP will give."""

    name: str
    operator: str
    controller: str
    bearer: Bearer


class GadgetRig(Rig):
    """A ``Rig`` whose modems are gadgets, one on each of ``controllers``, and whose probe is whatever they are plugged into.

    Between the plug and the radio link each modem has a namespace of its own (``modem-PATH``) with its DHCP server and NAT.
    ``family``: of the AT dialogue and the USB ids. ``alike``: all modems give out the same addresses.
    """

    def __init__(
        self,
        played: Played,
        folder: Path,
        owner: Owner,
        controllers: Sequence[str],
        *,
        family: str = "ublox",
        alike: bool = False,
    ) -> None:
        near = {name.lower(): f"modem-{name.lower()}" for name in played.operators}
        super().__init__(played, folder, owner, families=(family,), near=near)
        if len(controllers) < len(self.operators):
            raise GadgetError(
                f"{len(self.operators)} modems and {len(controllers)} USB device controllers; hint: name fewer operators"
            )
        self._controllers = dict(zip(self.operators, controllers, strict=False))
        self._alike = alike
        self._dhcp: list[Dnsmasq] = []
        self._starting: dict[str, Program] = {}
        self.paths: dict[str, UsbPath] = {}

    def __exit__(self, *error: object) -> None:
        try:
            for server in self._dhcp:
                server.stop()
        finally:
            super().__exit__(*error)

    def start_radio(self) -> None:
        """As a ``Rig``'s, and the modems' networks; GadgetError too."""
        super().start_radio()
        for number, path in enumerate(self.operators):
            self._network(path, number)

    def tell(self, path: str, wish: dict[str, object]) -> None:
        """A wish to a path's modem (``gadget.process``); GadgetError when it refuses."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.control_socket(path)))
            client.sendall(json.dumps(wish).encode() + b"\n")
            with client.makefile() as answers:
                answer = json.loads(answers.readline())
        if not answer["ok"]:
            raise GadgetError(f"the modem of path {path} refuses: {answer['error']}")

    def tell_link_again(self, path: str) -> None:
        """Have a path's modem say once more that its network is there. Linux as the host now and then loses the notification that
        waited while the interface was opened for the first time (seen with 6.1): the interface then stays without a carrier."""
        interface = self.paths[path].bearer.interface
        again = f"link set {interface} down\nlink set {interface} up\n"
        self.topology.run(f"modem-{path}", ["ip", "-batch", "-"], again)

    def _modem(self, path: str, family: str) -> None:
        operator, place = self.operators[path], f"modem-{path}"
        argv = [
            *(sys.executable, "-m", "tandem_bench", "gadget", "modem", "--family", family, "--name", f"tandem-{path}"),
            *("--timeline", str(self._timeline(operator)), "--operator-name", f"Operator {operator}"),
            *("--epoch-ns", str(self.epoch_monotonic_ns), "--seed", str(self.played.seed)),
            *("--udc", self._controllers[path], "--control", str(self.control_socket(path))),
            *("--json-log", str(self._fault_log(path))),
            *("--netns-pid", self.topology.netns_path(place).split("/")[2]),
        ]
        # As root: the kernel's gadget stack takes orders from nobody else.
        self._starting[path] = self.programs.start(place, argv)

    def _network(self, path: str, number: int) -> None:
        """Await the modem and set up what is behind its plug."""
        place = f"modem-{path}"
        interface = self._starting.pop(path).await_ready(READY_S).split()[1]
        access = next(access for access in self.topology.spec.accesses if access.path == path)
        network = IPv4Network(f"192.168.{8 if self._alike else 8 + number}.0/24")
        given = Bearer(interface, network, access.gateway)
        ours = f"address replace {given.gateway}/{network.prefixlen} dev {interface}\nlink set {interface} up\n"
        self.topology.run(place, ["ip", "-batch", "-"], ours)
        self.topology.run(place, ["nft", "-f", "-"], _NAT.format(uplink=access.interface))
        # The range is told last. It says two lines for each lease after that: a pipe takes hundreds of them.
        server = Dnsmasq(self.topology.command(place, dhcp_server(given)), "DHCP, IP range")
        server.start("the modem's DHCP server")
        self._dhcp.append(server)
        self.paths[path] = UsbPath(path, self.operators[path], self._controllers[path], given)
